// Threads on the same keys: every token is admitted exactly once. Each case fails unless threads
// really met, where they can: the store counts the exchanges that lost.
#include "tests/memory/fixture.hpp"
#include "tests/memory/threads.hpp"

namespace sluice::test {
namespace {

/// Asks for `key` until it is refused so many times; returns what was admitted.
Word spend(const TokenBucket& bucket, const KeyArg& key, int refusals) {
  Word admitted = 0;
  while (refusals > 0) {
    if (bucket.try_acquire(key)) {
      ++admitted;
    } else {
      --refusals;
    }
  }
  return admitted;
}

constexpr int most_rounds = 2'000;

}  // namespace

TEST_CASE("threads on one key admit its capacity exactly", "[memory][stress]") {
  const Word capacity = static_cast<Word>(scaled(50'000, 5'000));
  for (const std::size_t threads : {2U, 4U}) {
    Memory memory(64);
    const TokenBucket bucket(*memory.store, "b", Quota::per_hour(capacity));
    int round = 0;
    for (; round < most_rounds && (round < 5 || !enough(memory.stats().conflicts, 100)); ++round) {
      const std::string key = name("hot", static_cast<std::size_t>(round));
      std::atomic<Word> admitted{0};
      together(threads, [&](std::size_t) { admitted += spend(bucket, key, 10); });
      REQUIRE(admitted == capacity);
      memory.clock.advance(1h);
    }
    INFO("rounds: " << round << ", conflicts: " << memory.stats().conflicts);
    CHECK(met_enough(memory.stats().conflicts, 100));
  }
}

TEST_CASE("threads on one key under a moving clock admit what drains, exactly",
          "[memory][stress]") {
  // The bucket is spent first and never drains empty, so all that drains can be admitted, and no
  // more: capacity + rate * time, the bound for every interval, is reached.
  const Word capacity = 100'000;
  const std::size_t ticks = scaled(30'000, 3'000);
  Memory memory(64);
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(capacity / 10).burst(capacity));
  for (int round = 0; round < most_rounds; ++round) {
    REQUIRE(spend(bucket, "hot", 1) <= capacity);
    std::atomic<Word> admitted{0};
    std::atomic<bool> moving{true};
    together(4, [&](std::size_t index) {
      if (index == 0) {
        for (std::size_t i = 0; i < ticks; ++i) memory.clock.advance(100us);  // one token
        moving = false;
        return;
      }
      while (moving) admitted += spend(bucket, "hot", 1);
      admitted += spend(bucket, "hot", 1);
    });
    REQUIRE(admitted == static_cast<Word>(ticks));
    if (round >= 2 && enough(memory.stats().conflicts, 20)) break;
  }
  INFO("conflicts: " << memory.stats().conflicts);
  CHECK(met_enough(memory.stats().conflicts, 20));
}

TEST_CASE("threads that bring the same new keys never give a key two slots", "[memory][stress]") {
  // Eight slots, and eight new keys each round: at first the slots are empty, then idle. A key in
  // two slots would be admitted twice its capacity.
  const Word capacity = 200;
  Memory memory(1);
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(capacity));
  const int least = static_cast<int>(scaled(300, 30));
  for (int round = 0; round < most_rounds; ++round) {
    std::array<std::atomic<Word>, 8> admitted{};
    together(4, [&](std::size_t index) {
      for (std::size_t turn = 0; turn < 8; ++turn) {
        const std::size_t key = (turn + index * 2) % 8;
        admitted[key] += spend(bucket, name("k", static_cast<std::size_t>(round) * 8 + key), 1);
      }
    });
    for (const auto& count : admitted) REQUIRE(count == capacity);
    memory.clock.advance(2s);
    if (round >= least && enough(memory.stats().conflicts, 20)) break;
  }
  INFO("conflicts: " << memory.stats().conflicts);
  CHECK(met_enough(memory.stats().conflicts, 20));
  CHECK(memory.stats().evicted_idle >= static_cast<std::uint64_t>(least) * 8);
  CHECK(memory.stats().keys == 8);
}

TEST_CASE("bound limiters of many threads follow keys that are evicted all the time",
          "[memory][stress]") {
  // More keys than slots, a clock that runs: keys are evicted, return and overflow. No key may ever
  // be admitted more than capacity + rate * time.
  Memory memory(1);
  const Word capacity = 5;
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(10).burst(capacity));
  constexpr std::size_t keys = 12;
  std::vector<BoundTokenBucket> bound;
  for (std::size_t i = 0; i < keys; ++i) bound.push_back(bucket.at(name("k", i)));
  std::array<std::atomic<Word>, keys> admitted{};
  const Time start = memory.clock.now();
  const std::size_t turns = scaled(200'000, 20'000);
  together(4, [&](std::size_t index) {
    SeededRng rng(index + 1);
    for (std::size_t i = 0; i < turns; ++i) {
      if (index == 0) {
        memory.clock.advance(rng.below(2'000) == 0 ? Span(600ms)
                                                   : Span{static_cast<Word>(rng.below(2'000))});
      }
      const std::size_t key = rng.below(rng.below(4) == 0 ? keys : 2);
      if (bound[key].try_acquire()) ++admitted[key];
    }
  });
  const Word drained = (memory.clock.now() - start).count() / 100'000;
  for (const auto& count : admitted) {
    CHECK(count > 0);
    CHECK(count <= capacity + drained);
  }
  CHECK(memory.stats().evicted_idle > 0);
  CHECK(memory.stats().overflowed > 0);
}

TEST_CASE("plans over more keys than there are slots neither hang nor admit too much",
          "[memory][stress]") {
  Memory memory(1);
  const Word capacity = 4;
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(20).burst(capacity));
  constexpr std::size_t keys = 14;
  std::array<std::string, keys> names;
  for (std::size_t i = 0; i < keys; ++i) names[i] = name("k", i);
  std::array<std::atomic<Word>, keys> admitted{};
  const Time start = memory.clock.now();
  const std::size_t turns = scaled(60'000, 6'000);
  together(3, [&](std::size_t index) {
    SeededRng rng(index + 1);
    for (std::size_t i = 0; i < turns; ++i) {
      if (index == 0) {  // a pause lets all keys become idle, however busy the others are
        memory.clock.advance(rng.below(100) == 0 ? Span(600ms)
                                                 : Span{static_cast<Word>(rng.below(20'000))});
      }
      const std::size_t first = rng.below(keys);
      const std::size_t second = (first + 1 + rng.below(keys - 1)) % keys;
      if (decide(*memory.store,
                 {bucket.acquire_step(names[first]), bucket.acquire_step(names[second])})) {
        ++admitted[first];
        ++admitted[second];
      }
    }
  });
  const Word drained = (memory.clock.now() - start).count() / 50'000;
  for (const auto& count : admitted) {
    CHECK(count > 0);
    CHECK(count <= capacity + drained);
  }
  CHECK(memory.stats().overflowed > 0);
  CHECK(memory.stats().evicted_idle > 0);
}

}  // namespace sluice::test
