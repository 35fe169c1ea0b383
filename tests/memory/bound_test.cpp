// Limiters bound to one key: they remember where the key's state is, and notice when it moves.
#include "tests/memory/fixture.hpp"

namespace sluice::test {

TEST_CASE("a bound key is charged once under an id", "[memory]") {
  Memory memory(64);
  const TokenBucket bucket(*memory.store, "api", Quota::per_hour(9).burst(9));
  const BoundTokenBucket bound = bucket.at("k");
  const RequestId id{1, 2};
  std::error_code error;
  const Decision first = bound.try_acquire(4, id);
  CHECK(first.remaining == 5);
  CHECK(bound.try_acquire(4, id, error) == first);
  CHECK(bucket.try_acquire("k", 4, id) == first);
  CHECK(bound.peek().remaining == 5);
  CHECK_FALSE(error);
}

TEST_CASE("a bound limiter and its unbound one spend from the same bucket", "[memory]") {
  Memory memory(64);
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(1).burst(5));
  const BoundTokenBucket bound = bucket.at("k");
  CHECK(bound.peek().remaining == 5);
  CHECK(bound.try_acquire(2).remaining == 3);
  CHECK(bucket.try_acquire("k").remaining == 2);
  CHECK(bound.try_acquire(2).remaining == 0);
  CHECK_FALSE(bucket.try_acquire("k").allowed);
  CHECK(decide(*memory.store, {bound.acquire_step(), bucket.acquire_step("other")}).retry_after ==
        1s);
}

TEST_CASE("a bound limiter outlives the eviction of its key", "[memory]") {
  Memory memory(1);
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(1).burst(4));
  const BoundTokenBucket bound = bucket.at("mine");
  REQUIRE(bound.try_acquire(4).allowed);
  memory.clock.advance(4s);
  for (std::size_t i = 0; i < 8; ++i) REQUIRE(bucket.try_acquire(name("other", i), 3));
  REQUIRE(memory.stats().evicted_idle >= 1);
  // Its slot belongs to another key now: nobody's state but a shared bucket's may change.
  CHECK(bound.peek().remaining == 4);
  CHECK(bound.try_acquire(2).remaining == 2);
  CHECK(memory.stats().overflowed > 0);
  for (std::size_t i = 0; i < 8; ++i) CHECK(bucket.peek(name("other", i)).remaining == 1);
  // As room comes again, it takes what it spent in the shared bucket along.
  memory.clock.advance(1s);
  CHECK(bound.try_acquire(3).remaining == 0);
  memory.clock.advance(4s);
  CHECK(bound.try_acquire(1).remaining == 3);
  CHECK(bound.peek().remaining == 3);
}

TEST_CASE("a binding of another store is looked up like any key", "[memory]") {
  Memory one(64);
  Memory two(64, 2);
  const TokenBucket bucket(*one.store, "b", Quota::per_second(1).burst(4));
  const BoundTokenBucket bound = bucket.at("k");
  REQUIRE(bound.try_acquire(3).allowed);
  CHECK(decide(*two.store, bound.acquire_step(1)).remaining == 3);
  CHECK(bound.peek().remaining == 1);
}

}  // namespace sluice::test
