// Threads on states in cells and in blocks, alone, in plans and under request ids. Each case fails
// unless threads really met, where they can: the store counts the exchanges that lost and the slots
// that were locked.
#include "tests/memory/fixture.hpp"
#include "tests/memory/rules.hpp"
#include "tests/memory/threads.hpp"

namespace sluice::test {
namespace {

constexpr int most_rounds = 2'000;
constexpr Word day = 86'400'000'000;

/// Asks until it is refused; returns what was admitted.
Word spend(Store& store, const Step& step) {
  Word admitted = 0;
  std::error_code error;
  while (decide(store, step, error).allowed) ++admitted;
  return error ? -1'000'000 : admitted;
}

/// Rounds, each on a store of its own, until threads have met so often; `round(memory)` does one.
template <class Round>
void until_met(std::size_t max_keys, std::uint64_t MemoryStats::*met, const Round& round) {
  std::uint64_t contention = 0;
  std::size_t rounds = 0;
  for (; rounds < most_rounds && (rounds < 3 || !enough(contention, 20)); ++rounds) {
    Memory memory(max_keys);
    round(memory);
    contention += memory.stats().*met;
  }
  INFO("rounds: " << rounds << ", contention: " << contention);
  CHECK(met_enough(contention, 20));
}

}  // namespace

TEST_CASE("threads on one state admit its limit exactly, in a cell and in a block that grows",
          "[memory][stress]") {
  const auto limit = static_cast<Word>(scaled(20'000, 2'000));
  const auto check = [&](const Operation& row, std::uint64_t MemoryStats::*met) {
    until_met(64, met, [&](const Memory& memory) {
      const std::string key = "k";
      std::atomic<Word> admitted{0};
      together(3, [&](std::size_t) {
        admitted += spend(*memory.store, asks(row, {key, "x"}, 1, limit, day));
      });
      REQUIRE(admitted == limit);
    });
  };
  check(counter_add, &MemoryStats::conflicts);
  check(log_push, &MemoryStats::waits);
}

TEST_CASE("states that are charged by one plan stay equal, whatever they lie in",
          "[memory][stress]") {
  const auto limit = static_cast<Word>(scaled(4'000, 500));
  until_met(64, &MemoryStats::waits, [&](const Memory& memory) {
    const std::string key = "k";
    const TokenBucket bucket(*memory.store, "b", Quota::per_hour(limit));
    const std::array steps{bucket.acquire_step(Key(key, "b")),
                           asks(log_push, {key, "l"}, 1, 3 * limit, day),
                           asks(counter_add, {key, "c"}, 1, 3 * limit, day)};
    std::atomic<Word> plans{0};
    std::atomic<Word> logs{0};
    std::atomic<Word> counts{0};
    together(4, [&](std::size_t index) {
      std::error_code error;
      if (index < 2) {
        const std::array turned{steps[index + 1], steps[0], steps[2 - index]};
        while (decide(*memory.store, turned, error).allowed) ++plans;
      } else {
        // Alone on one of them, in between; a plan that is refused shows in none.
        auto& mine = index == 2 ? logs : counts;
        for (Word i = 0; i < limit; ++i) {
          if (decide(*memory.store, steps[index - 1], error).allowed) ++mine;
          static_cast<void>(
              decide(*memory.store, {steps[1], asks(log_pop, {key, "never"})}, error));
        }
      }
    });
    REQUIRE(plans == limit);
    std::error_code error;
    const auto left = [&](const Operation& row, const char* part) {
      return decide(*memory.store, asks(row, {key, part}, 0, 3 * limit, day), error).remaining;
    };
    REQUIRE(left(log_push, "l") == 3 * limit - plans - logs);
    REQUIRE(left(counter_add, "c") == 3 * limit - plans - counts);
  });
}

TEST_CASE("threads that ask under one id are charged once and hear the same answer",
          "[memory][stress]") {
  const std::size_t ids = scaled(2'000, 200);
  until_met(2 * ids, &MemoryStats::waits, [&](Memory& memory) {
    const std::string key = "k";
    const auto limit = static_cast<Word>(ids) + 1;
    const Step step = asks(log_push, {key, "l"}, 1, limit, day);
    std::vector<std::array<Word, 4>> heard(ids);
    together(4, [&](std::size_t index) {
      std::error_code error;
      for (std::size_t i = 0; i < ids; ++i) {
        if (index == 0) memory.clock.advance(1us);
        heard[i][index] = decide(*memory.store, Plan(step).idempotent({7, i}), error).remaining;
        if (error) heard[i][index] = -1;
      }
    });
    REQUIRE(memory.stats().rejected == 0);
    for (const auto& each : heard) {
      REQUIRE(each == std::array<Word, 4>{each[0], each[0], each[0], each[0]});
    }
    REQUIRE(decide(*memory.store, asks(log_push, {key, "l"}, 0, limit, day)).remaining == 1);
  });
}

TEST_CASE("states keep their words while slots change hands and blocks are reclaimed",
          "[memory][stress]") {
  // More keys than slots, and fewer blocks than the keys would fill. The rule calls a state corrupt
  // whose words are not what it wrote. Single decisions, plans, cells and blocks, all at once.
  const std::size_t needed = 8'192 + 150'000;
  VirtualClock clock;
  SeededRng rng(1);
  const auto store =
      make_memory_store({.max_keys = 4, .max_bytes = needed, .clock = &clock, .rng = &rng});
  const std::size_t turns = scaled(60'000, 6'000);
  std::array<std::atomic<std::uint64_t>, 3> ends{};  // refused, allowed, full
  std::atomic<std::uint64_t> others{0};
  for (int round = 0; round < most_rounds; ++round) {
    together(4, [&](std::size_t index) {
      SeededRng draw(index + 1 + static_cast<std::uint64_t>(round) * 4);
      std::error_code error;
      for (std::size_t i = 0; i < turns; ++i) {
        if (index == 0 && i % 16 == 0) clock.advance(draw.below(20) == 0 ? Span(2min) : Span(1ms));
        const std::string key = name("k", draw.below(14));
        const std::string other = name("o", draw.below(14));
        const auto units = static_cast<Word>(1 + draw.below(draw.below(8) == 0 ? 2'000 : 6));
        const Step push = asks(log_push, {key, "l"}, units, 3'000, 50'000);
        Decision decision;
        switch (draw.below(4)) {
          case 0:
            decision = decide(*store, {push, asks(counter_add, {other, "c"}, 1, 9, 1)}, error);
            break;
          case 1:
            decision = decide(*store, asks(counter_add, {other, "c"}, 1, 9, 1), error);
            break;
          case 2:
            decision = decide(*store, asks(log_pop, {key, "l"}, units, 3'000, 50'000), error);
            break;
          default:
            decision = decide(*store, push, error);
        }
        if (error && error != Errc::store_full) ++others;
        ++ends[error ? 2 : decision.allowed ? 1 : 0];
      }
    });
    if (enough(store->stats().waits, 20) && ends[2] > 20 && round >= 2) break;
  }
  CHECK(others == 0);
  for (const auto& end : ends) CHECK(end > 20);
  INFO("waits: " << store->stats().waits);
  CHECK(met_enough(store->stats().waits, 20));
  CHECK(store->stats().evicted_idle > 20);
  // No block was lost or given to two.
  clock.advance(2min);
  for (std::size_t i = 0; i < 200; ++i) {  // until every slot is another's
    error_of(*store, asks(counter_add, {name("last", i), "c"}, 1, 9, day));
  }
  CHECK(store->stats().block_bytes == 0);
}

}  // namespace sluice::test
