// Room for states of more than two words: they grow, move, go with their keys, and run out; and
// whatever runs out, nothing is half done.
#include <vector>

#include "backends/memory/blocks.hpp"
#include "backends/memory/engine.hpp"
#include "tests/memory/fixture.hpp"
#include "tests/memory/rules.hpp"

namespace sluice::test {
namespace {

constexpr std::size_t unit = memory::Blocks::unit_bytes;

/// A store with so many bytes of blocks, and eight slots.
struct Tight {
  explicit Tight(std::size_t block_bytes, std::size_t max_keys = 1)
      : store(make_memory_store({.max_keys = max_keys,
                                 .max_bytes = memory::Engine::bytes_for({.max_keys = max_keys}) +
                                              block_bytes / unit * (unit + 1),
                                 .clock = &clock,
                                 .rng = &rng})) {}

  [[nodiscard]] MemoryStats stats() const { return store->stats(); }
  Decision operator()(const Plan& plan) { return decide(*store, plan); }
  std::error_code error(const Plan& plan) { return error_of(*store, plan); }

  VirtualClock clock;
  SeededRng rng{1};
  std::unique_ptr<MemoryStore> store;
};

const Key log_key{"log", "l"};
constexpr Word day = 86'400'000'000;

Step push(const KeyArg& key, Word units, Word limit = 1'000'000, Word keep_us = day) {
  return asks(log_push, key, units, limit, keep_us);
}

}  // namespace

TEST_CASE("a state grows from block to block and keeps its words", "[memory]") {
  Memory memory(64);
  std::array<Word, 2> told{};
  std::error_code error;
  const auto first = to_word(memory.clock.now());
  for (Word entries = 1; entries < 100'000; entries += entries / 3 + 1) {
    const Word units = entries / 3 + 1;
    const auto ask = push(log_key, entries == 1 ? 1 : units, 200'000);
    static_cast<void>(decide(*memory.store, ask, error, {}, told));
    REQUIRE_FALSE(error);
    REQUIRE(told[1] == (entries == 1 ? 0 : first));
    const std::size_t words = static_cast<std::size_t>(told[0]) + 1;
    REQUIRE(memory.stats().block_bytes >= words * sizeof(Word));
    REQUIRE(memory.stats().block_bytes <= std::max(unit, 2 * words * sizeof(Word)));
    memory.clock.advance(1ms);
  }
  // Popping moves all of them.
  CHECK(decide(*memory.store, asks(log_pop, log_key, 7, 10, day)).allowed);
  static_cast<void>(decide(*memory.store, push(log_key, 0, 200'000), error, {}, told));
  CHECK(told[1] > first);
}

TEST_CASE("a state has at most so many words, and says when it would have more", "[memory]") {
  Memory memory(64);
  const auto most = static_cast<Word>(max_state_words);
  CHECK(decide(*memory.store, push(log_key, most - 1, most)).allowed);
  CHECK(error_of(*memory.store, push(log_key, 1, most)) == Errc::store_full);
  CHECK(decide(*memory.store, push(log_key, 0, most)).remaining == 1);
}

TEST_CASE("absent states take no block and no slot when they are refused or looked at",
          "[memory]") {
  Memory memory(64);
  CHECK(decide(*memory.store, push(log_key, 0)).allowed);
  CHECK_FALSE(decide(*memory.store, asks(log_pop, log_key)).allowed);
  CHECK(memory.stats().keys == 0);
  CHECK(memory.stats().block_bytes == 0);
  CHECK_FALSE(decide(*memory.store, {push({"other", "l"}, 1), asks(log_pop, log_key)}).allowed);
  CHECK(memory.stats().block_bytes == 0);
  CHECK(decide(*memory.store, push(log_key, 1)).allowed);
  CHECK(memory.stats().block_bytes == unit);
}

TEST_CASE("a slot that changes hands gives its block back", "[memory]") {
  Tight tight(16 * unit);
  for (std::size_t round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < 8; ++i) {
      REQUIRE(tight(push({name("k", round * 8 + i), "l"}, 5, 9, 1)).allowed);  // two units
    }
    REQUIRE(tight.stats().block_bytes == 16 * unit);
    REQUIRE(tight.stats().evicted_idle == round * 8);
    tight.clock.advance(2min);
  }
  // A state in a cell takes over the slot of one in a block, and the other way round.
  for (std::size_t i = 0; i < 8; ++i) {
    REQUIRE(tight(asks(counter_add, {name("c", i), "c"})).allowed);
  }
  CHECK(tight.stats().block_bytes == 0);
  tight.clock.advance(2min);
  CHECK(tight(push({"last", "l"}, 5)).remaining == 999'995);
  CHECK(tight.stats().block_bytes == 2 * unit);
}

TEST_CASE("blocks of states that mean nothing any more serve others before the store is full",
          "[memory]") {
  Tight tight(4 * unit, 64);
  for (std::size_t i = 0; i < 4; ++i)
    REQUIRE(tight(push({name("k", i), "l"}, 3, 9, 1'000)).allowed);
  CHECK(tight.error(push({"late", "l"}, 3)) == Errc::store_full);
  CHECK(tight.stats().rejected == 1);
  CHECK(tight(push({"k0", "l"}, 0, 9, day)).remaining == 6);  // others are as they were
  tight.clock.advance(2min);
  CHECK(tight(push({"late", "l"}, 15)).allowed);  // all four units, joined
  CHECK(tight.stats().block_bytes == 4 * unit);
  CHECK(tight.stats().evicted_idle == 0);
  // Their keys are fresh, and still have their slots.
  CHECK(tight(push({"k0", "l"}, 0, 9, day)).remaining == 9);
  CHECK(tight.error(push({"k0", "l"}, 1, 9, day)) == Errc::store_full);
}

TEST_CASE("a full table turns away new keys of rules with effects, but answers what it can",
          "[memory]") {
  Tight tight(64 * unit);
  for (std::size_t i = 0; i < 4; ++i) REQUIRE(tight(push({name("k", i), "l"}, 1)).allowed);
  for (std::size_t i = 0; i < 4; ++i) {
    REQUIRE(tight(asks(counter_add, {name("c", i), "c"}, 1, 5, day)).allowed);
  }
  const Key fresh{"fresh", "l"};
  CHECK(tight.error(push(fresh, 1)) == Errc::store_full);
  CHECK(tight.error(asks(counter_add, {"fresh", "c"})) == Errc::store_full);
  CHECK(tight(push(fresh, 0)).remaining == 1'000'000);
  CHECK_FALSE(tight(asks(log_pop, fresh)).allowed);
  std::error_code error;
  const Decision full =
      decide(*tight.store, {asks(counter_add, {"c0", "c"}, 1, 5, day), push(fresh, 1)}, error);
  CHECK(error == Errc::store_full);
  CHECK(full.step == 1);
  CHECK_FALSE(tight({asks(counter_add, {"c0", "c"}, 5, 5, day), push(fresh, 1)}).allowed);
  CHECK(tight({asks(counter_add, {"c0", "c"}, 1, 5, day), push(fresh, 0)}).remaining == 3);
  CHECK(tight.error(Plan(asks(counter_add, {"c0", "c"}, 1, 5, day)).idempotent({1, 2})) ==
        Errc::store_full);
  CHECK(tight(asks(counter_add, {"c0", "c"}, 0, 5, day)).remaining == 3);
}

TEST_CASE("a key that spent from a shared bucket starts with it, whichever rule brings it back",
          "[memory]") {
  for (const bool in_plan : {false, true}) {
    CAPTURE(in_plan);
    Tight tight(0);
    const TokenBucket bucket(*tight.store, "b", Quota::per_hour(9));
    for (std::size_t i = 0; i < 8; ++i) {
      REQUIRE(tight(asks(counter_add, {name("c", i), "c"}, 1, 5, i == 0 ? 1 : day)).allowed);
    }
    REQUIRE(bucket.try_acquire("k", 7).allowed);
    REQUIRE(tight.stats().overflowed == 1);
    const Step too_much = bucket.reserve_step("k", 3, 0s);
    CHECK_FALSE(tight(too_much).allowed);
    tight.clock.advance(2min);  // a slot becomes idle
    CHECK_FALSE(tight(too_much).allowed);
    const Step spend = bucket.reserve_step("k", 1, 0s);
    const Step other = asks(counter_add, {"c1", "c"}, 1, 5, day);
    CHECK((in_plan ? tight({spend, other}) : tight(spend)).allowed);
    CHECK(tight.stats().evicted_idle == 1);
    CHECK(bucket.peek("k").remaining == 1);
  }
}

TEST_CASE("a plan that finds no block for one of its states changes none of them", "[memory]") {
  // Each plan charges a bucket, a counter and three logs that grow by different amounts, and notes
  // its id. However much room there is, either all of it happens or nothing does.
  std::size_t full = 0;
  std::size_t done = 0;
  for (std::size_t units = 0; units <= 48; ++units) {
    Tight tight(units * unit, 64);
    const TokenBucket bucket(*tight.store, "b", Quota::per_hour(9));
    const bool first = units >= 3;
    for (std::size_t i = 0; first && i < 3; ++i) {
      REQUIRE(tight(push({name("k", i), "l"}, 2)).allowed);
    }
    const std::array steps{push({"k0", "l"}, 1), bucket.acquire_step("b"), push({"k1", "l"}, 3),
                           asks(counter_add, {"c", "c"}), push({"k2", "l"}, 60)};
    const Plan plan = Plan(steps).idempotent({7, units});
    const std::size_t before = tight.stats().block_bytes;
    const std::error_code error = tight.error(plan);
    const Word added = error ? 0 : 1;
    CHECK((!error || error == Errc::store_full));
    ++(error ? full : done);
    CHECK(bucket.peek("b").remaining == 9 - added);
    CHECK(tight(asks(counter_add, {"c", "c"}, 0)).remaining == 5 - added);
    const Word at_first = first ? 2 : 0;
    const std::array<Word, 3> grown{1, 3, 60};
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(tight(push({name("k", i), "l"}, 0)).remaining ==
            1'000'000 - at_first - added * grown[i]);
    }
    if (error) {
      CHECK(tight.stats().block_bytes == before);
      CHECK(tight.stats().rejected == 1);
    }
  }
  CHECK(full > 10);
  CHECK(done > 5);
}

}  // namespace sluice::test
