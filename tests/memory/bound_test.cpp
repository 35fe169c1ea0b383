// Limiters bound to one key: they remember where the key's state is, and notice when it moves.
#include "tests/memory/fixture.hpp"

namespace sluice::test {

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
  Step elsewhere = bound.acquire_step(1);
  elsewhere.store = nullptr;  // as a decorator passes it on
  CHECK(decide(*two.store, elsewhere).remaining == 3);
  CHECK(bound.peek().remaining == 1);
}

TEST_CASE("a bound limiter keeps its binding when it is moved", "[memory]") {
  Memory memory(64);
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(1).burst(4));
  BoundTokenBucket first = bucket.at("k");
  REQUIRE(first.try_acquire(1).allowed);
  const BoundTokenBucket moved = std::move(first);
  CHECK(moved.acquire_step().binding->owner == memory.store.get());
  CHECK(moved.try_acquire().remaining == 2);
  BoundTokenBucket assigned = bucket.at("other");
  BoundTokenBucket second = bucket.at("k");
  assigned = std::move(second);
  CHECK(assigned.acquire_step().binding->owner == memory.store.get());
  CHECK(assigned.try_acquire().remaining == 1);
}

TEST_CASE("an answer clears the error of the last one", "[memory]") {
  Memory memory(64);
  const auto real = make_memory_store({.max_keys = 64});  // with a coarse clock
  for (Store* const store :
       {static_cast<Store*>(memory.store.get()), static_cast<Store*>(real.get())}) {
    const TokenBucket bucket(*store, "b", Quota::per_hour(3).burst(3));
    const BoundTokenBucket bound = bucket.at("k");
    std::error_code error;
    for (int i = 0; i < 5; ++i) {  // three are allowed, two refused
      CHECK_FALSE(bound.try_acquire(4, error));
      CHECK(error == Errc::cost_exceeds_capacity);
      CHECK(bound.try_acquire(error).allowed == (i < 3));
      CHECK_FALSE(error);
      CHECK_FALSE(bound.try_acquire(-1, error));
      CHECK(error == Errc::invalid_cost);
      CHECK(bound.try_acquire(0, error).allowed);
      CHECK_FALSE(error);
      CHECK_FALSE(bucket.try_acquire("", error));
      CHECK(error == Errc::invalid_key);
      CHECK(bucket.try_acquire("other", error).allowed == (i < 3));
      CHECK_FALSE(error);
    }
  }
}

TEST_CASE("a key that spends more is kept for longer", "[memory]") {
  const bool is_bound = GENERATE(true, false);
  Memory memory(1);
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(1).burst(4));
  const BoundTokenBucket bound = bucket.at("mine");
  const auto spend = [&](Word cost) {
    return is_bound ? bound.try_acquire(cost) : bucket.try_acquire("mine", cost);
  };
  REQUIRE(spend(1).allowed);
  REQUIRE(spend(3).allowed);
  memory.clock.advance(2s);  // what was spent first would have drained by now
  for (std::size_t i = 0; i < 16; ++i) (void)bucket.try_acquire(name("other", i), 1);
  CHECK(memory.stats().evicted_idle == 0);
  CHECK(bucket.peek("mine").remaining == 2);
}

TEST_CASE("a decision reads one clock", "[memory]") {
  struct CountingClock final : Clock {
    [[nodiscard]] Time now() const noexcept override {
      ++fine;
      return time;
    }
    [[nodiscard]] Time coarse_now() const noexcept override {
      ++coarse;
      return time;
    }
    Time time = VirtualClock::default_start;
    mutable std::size_t fine = 0;
    mutable std::size_t coarse = 0;
  } clock;
  SeededRng rng(1);
  const auto store = make_memory_store({.max_keys = 64, .clock = &clock, .rng = &rng});
  constexpr std::size_t times = 100;
  std::error_code error;
  // The first calls find where the key is, and which clock suffices.
  const auto readings = [&](const auto& ask, Span step) {
    for (int i = 0; i < 3; ++i) ask();
    clock.fine = clock.coarse = 0;
    for (std::size_t i = 0; i < times; ++i) {
      clock.time += step;
      ask();
    }
    return std::pair(clock.fine, clock.coarse);
  };
  const TokenBucket wide(*store, "wide", Quota::per_second(1'000).burst(1'000'000));
  const BoundTokenBucket spent = wide.at("spent");
  REQUIRE(spent.try_acquire(500'000));
  CHECK(readings([&] { (void)spent.try_acquire(error); }, 1ms) == std::pair(std::size_t{0}, times));
  CHECK(readings([&] { (void)wide.try_acquire("n", error); }, 1ms) ==
        std::pair(times, std::size_t{0}));
  const BoundTokenBucket full = TokenBucket(*store, "full", Quota::per_second(100)).at("k");
  CHECK(readings([&] { (void)full.try_acquire(error); }, 10s) == std::pair(times, std::size_t{0}));
  const BoundTokenBucket tight =
      TokenBucket(*store, "tight", Quota::per_second(100).burst(1)).at("k");
  CHECK(readings([&] { (void)tight.try_acquire(error); }, 1us) == std::pair(times, std::size_t{0}));
  const BoundTokenBucket shut = TokenBucket(*store, "shut", Quota::per_hour(1)).at("k");
  CHECK(readings([&] { (void)shut.try_acquire(error); }, 1us) == std::pair(std::size_t{0}, times));
  CHECK_FALSE(error);
}

}  // namespace sluice::test
