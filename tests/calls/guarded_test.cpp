// guarded(): what is called when, what is given back, and whose error it is.
#include <array>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

struct World {
  VirtualClock clock;
  VirtualClock::AutoAdvance moving{clock};
  std::unique_ptr<Store> store = make_virtual_store(clock);
};

}  // namespace

TEST_CASE("a guarded call waits for its grant, and its result comes back", "[calls]") {
  World world;
  const TokenBucket bucket(*world.store, "b", Quota::per_second(1).burst(1));
  const Time start = world.clock.now();
  for (int i = 0; i < 3; ++i) {
    CHECK(guarded(bucket, "a", 1, 10s, [&] { return i; }) == i);
    CHECK(world.clock.now() == start + i * 1s);
  }
  int called = 0;
  guarded(bucket, "a", 1, 10s, [&] { ++called; });
  CHECK(called == 1);
}

TEST_CASE("calls pass their priority and flow on", "[calls]") {
  World world;
  const TokenBucket bucket(*world.store, "b", Quota::per_second(1).burst(1));
  REQUIRE(bucket.try_acquire("a"));
  std::vector<std::shared_ptr<Probe<TokenBucket>>> backlog;
  for (int i = 0; i < 20; ++i) {
    backlog.push_back(wait_for(bucket, {"a", 1}, 1h, [](std::error_code, const Reservation&) {}));
  }
  const Time start = world.clock.now();
  const std::array claims{Claim(bucket, "a")};
  const Call of_high_priority({{bucket, "a"}}, {.priority = 1});
  of_high_priority([] {});
  CHECK(world.clock.now() == start + 1s);
  guarded(bucket, "a", 1, 1h, [] {}, {.priority = 1});
  CHECK(world.clock.now() == start + 2s);
  // By arrival, where both have the same weight.
  const Call of_flow({{bucket, "a"}}, {.flow = std::string(40, 'x')});
  CHECK(of_flow.options().flow == std::string(40, 'x'));
  of_flow([] {});
  CHECK(world.clock.now() == start + 4s);
  guarded(bucket, "a", 1, 1h, [] {}, {.flow = "y", .weight = 2});
  CHECK(world.clock.now() == start + 5s);
  const Grants granted = acquire(claims, 1h, {.flow = "z", .weight = 1000});
  CHECK(granted);
  CHECK(world.clock.now() == start + 6s);
  bucket.cancel_waits();
}

TEST_CASE("a refusal is the limiter's error, and nothing is called", "[calls]") {
  World world;
  const TokenBucket bucket(*world.store, "b", Quota::per_second(1).burst(1));
  guarded(bucket, "a", 1, 0s, [] {});
  try {
    guarded(bucket, "a", 1, 0s, [] { FAIL("called"); });
    FAIL("not refused");
  } catch (const NotGranted& limited) {
    CHECK(limited.decision().retry_after == 1s);
    CHECK(std::string(limited.what()) == "\"b\" did not grant the call in time");
  }
  CHECK_THROWS_AS(guarded(bucket, "a", 2, 0s, [] {}), std::system_error);
}

TEST_CASE("whatever settles charges a guarded call its true cost", "[calls]") {
  World world;
  const auto check = [](const auto& limiter, Word most) {
    const auto costs = [&](Word estimate, Word actual) {
      CHECK(guarded(limiter, "a", estimate, 0s, [&] { return Costed<int>{7, actual}; }) == 7);
      return most - limiter.peek("a").remaining;
    };
    CHECK(costs(50, 12) == 12);
    CHECK(costs(10, 30) == 42);
    CHECK(costs(8, 8) == 50);
  };
  check(TokenBucket(*world.store, "t", Quota::per_hour(100)), 100);
  const SharedTokenBucket shared(*world.store, "s");
  shared.configure("a", Quota::per_hour(100));
  check(shared, 100);
  check(SlidingWindow(*world.store, "w", {{100, 1h}, {200, 24h}}), 100);
  check(SlidingWindowCounter(*world.store, "c", {100, 1h}), 100);
  check(FixedWindow(*world.store, "f", 100, Calendar::every(1h)), 100);
}

TEST_CASE("a slot lock spaces guarded calls", "[calls]") {
  World world;
  const SlotLock lock(*world.store, "l", 2s);
  const Time start = world.clock.now();
  for (int i = 0; i < 4; ++i) {
    guarded(lock, "a", 1min, [&](const SlotPermit& permit) {
      CHECK(permit.valid_at(world.clock.now()));
      CHECK(world.clock.now() == start + i * 2s);
    });
  }
}

}  // namespace sluice::test
