// What happens when the table is full: idle keys make room, known keys keep their state, and the
// rest shares buckets that are never more permissive than their own.
#include <map>
#include <vector>

#include "tests/memory/fixture.hpp"

namespace sluice::test {

TEST_CASE("only a key whose state means nothing any more loses its slot", "[memory]") {
  Memory memory(1);  // eight slots
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(1).burst(4));
  for (std::size_t i = 0; i < 8; ++i) {
    REQUIRE(bucket.try_acquire(name("old", i), i < 4 ? 1 : 4));  // idle after 1 s or after 4 s
  }
  REQUIRE(memory.stats().keys == 8);
  memory.clock.advance(2s);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(bucket.try_acquire(name("new", i), 2).remaining == 2);
  }
  CHECK(memory.stats().evicted_idle == 4);
  CHECK(memory.stats().overflowed == 0);
  for (std::size_t i = 4; i < 8; ++i) CHECK(bucket.peek(name("old", i)).remaining == 2);
  for (std::size_t i = 0; i < 4; ++i) CHECK(bucket.peek(name("new", i)).remaining == 2);
  CHECK(memory.stats().keys == 8);
}

TEST_CASE("known keys keep their state under a flood of new ones", "[memory]") {
  Memory memory(1024);
  const TokenBucket bucket(*memory.store, "b", Quota::per_hour(10));
  for (std::size_t i = 0; i < 500; ++i) REQUIRE(bucket.try_acquire(name("known", i), 7));
  const MemoryStats before = memory.stats();
  const std::size_t flood = scaled(200'000, 20'000);
  for (std::size_t i = 0; i < flood; ++i) {
    std::error_code error;
    static_cast<void>(bucket.try_acquire(name("flood", i), error));
    REQUIRE_FALSE(error);
    if (i % 1000 == 0) memory.clock.advance(1ms);
  }
  for (std::size_t i = 0; i < 500; ++i) REQUIRE(bucket.peek(name("known", i)).remaining == 3);
  CHECK(memory.stats().bytes == before.bytes);
  CHECK(memory.stats().keys <= 1024 * 7 / 4 + 6);
  CHECK(memory.stats().overflowed > 0);
  CHECK(memory.stats().evicted_idle == 0);
}

TEST_CASE("keys of an overfull table are never admitted more than by a bucket of their own",
          "[memory]") {
  Random random("keys of an overfull table are never admitted more than by a bucket of their own");
  CAPTURE(random.repeat());
  Memory memory(4, random.next());
  const Quota quota = Quota::per_second(5).burst(6);
  const TokenBucket bucket(*memory.store, "b", quota);
  const auto own = make_virtual_store(memory.clock);
  const TokenBucket model(*own, "b", quota);
  std::size_t admitted = 0;
  for (std::size_t run = 0; run < scaled(60'000, 6'000); ++run) {
    std::vector<std::string> keys{name("k", random.below(60))};
    if (random.one_in(4)) keys.push_back(name("l", random.below(60)));
    std::vector<Step> steps;
    std::vector<Step> alone;
    for (const std::string& key : keys) {
      const auto cost = static_cast<Word>(1 + random.below(4));
      steps.push_back(bucket.acquire_step(key, cost));
      alone.push_back(model.acquire_step(key, cost));
    }
    if (decide(*memory.store, Plan(std::span<const Step>(steps))).allowed) {
      ++admitted;
      REQUIRE(decide(*own, Plan(std::span<const Step>(alone))).allowed);
    }
    memory.clock.advance(Span{random.between(0, random.one_in(50) ? 2'000'000 : 60'000)});
  }
  CHECK(admitted > 0);
  CHECK(memory.stats().overflowed > 0);
  CHECK(memory.stats().evicted_idle > 0);
}

TEST_CASE("keys that share a bucket in one plan are charged for both", "[memory]") {
  Memory memory(1);
  const TokenBucket bucket(*memory.store, "b", Quota::per_hour(3));
  for (std::size_t i = 0; i < 8; ++i) REQUIRE(bucket.try_acquire(name("known", i)));
  // With 64 buckets for 65 keys, two of them share one: some pair is refused together though each
  // of its keys is fresh.
  bool refused = false;
  for (std::size_t i = 0; i < 65 && !refused; ++i) {
    for (std::size_t j = 0; j < i && !refused; ++j) {
      const std::string first = name("new", i);
      const std::string second = name("new", j);
      const std::array<Step, 2> steps{bucket.acquire_step(first, 2),
                                      bucket.acquire_step(second, 2)};
      const bool fresh = bucket.peek(first, 2).allowed && bucket.peek(second, 2).allowed;
      if (!fresh) continue;
      const Decision first_before = bucket.peek(first);
      const Decision both = decide(*memory.store, Plan(steps));
      if (!both.allowed) {
        refused = true;
        CHECK(bucket.peek(first) == first_before);
      } else {
        memory.clock.advance(3h);  // let all drain; the known keys are charged again
        for (std::size_t k = 0; k < 8; ++k) REQUIRE(bucket.try_acquire(name("known", k)));
      }
    }
  }
  CHECK(refused);
}

TEST_CASE("a table without room for a shared bucket either says that it is full", "[memory]") {
  Memory memory(1);
  std::vector<std::string> keys;
  std::size_t full = 0;
  for (std::size_t i = 0; i < 500; ++i) {
    // Each quota has shared buckets of its own.
    const TokenBucket bucket(*memory.store, "b", Quota::per_hour(1).burst(2 + i));
    std::error_code error;
    const Decision decision = bucket.try_acquire(name("k", i), error);
    if (error) {
      CHECK(error == Errc::store_full);
      CHECK_FALSE(decision.allowed);
      ++full;
    } else {
      CHECK(decision.remaining == 1 + static_cast<Word>(i));
    }
  }
  CHECK(full > 0);
  CHECK(memory.stats().rejected == full);
  const TokenBucket bucket(*memory.store, "b", Quota::per_hour(1).burst(10'000));
  CHECK(error_of(*memory.store, {bucket.acquire_step("x"), bucket.acquire_step("y")}) ==
        Errc::store_full);
  memory.clock.advance(1h);  // one token each: all are idle
  CHECK(bucket.try_acquire("x").allowed);
  CHECK(decide(*memory.store, {bucket.acquire_step("y"), bucket.acquire_step("z")}).allowed);
}

TEST_CASE("a key that asks without spending takes no slot", "[memory]") {
  Memory memory(1);
  const TokenBucket bucket(*memory.store, "b", Quota::per_hour(3));
  for (std::size_t i = 0; i < 100; ++i) CHECK(bucket.peek(name("k", i)).remaining == 3);
  CHECK(error_of(*memory.store, bucket.acquire_step("k", 4)) == Errc::cost_exceeds_capacity);
  CHECK(memory.stats().keys == 0);
}

TEST_CASE("a key needs at most 64 bytes of the store", "[memory]") {
  for (const std::size_t keys :
       {std::size_t{1} << 12, std::size_t{100'000}, std::size_t{1} << 20}) {
    const auto store = make_memory_store({.max_keys = keys});
    CHECK(store->stats().bytes <= 64 * keys);
  }
}

TEST_CASE("as many keys as were asked for find a slot of their own, but for a few in 10,000",
          "[memory]") {
  const std::size_t keys = scaled(200'000, 20'000);
  Memory memory(keys);
  const TokenBucket bucket(*memory.store, "b", Quota::per_hour(3));
  for (std::size_t i = 0; i < keys; ++i) REQUIRE(bucket.try_acquire(name("k", i)));
  CHECK(memory.stats().overflowed <= 1 + keys / 5'000);
}

}  // namespace sluice::test
