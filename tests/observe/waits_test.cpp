// What is told of waits, leases and calls.
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/observe/events.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

TEST_CASE("a wait is told when it begins and when it ends", "[observe][waits]") {
  Observed o;
  const TokenBucket bucket(o.store, "api", Quota::per_second(10).burst(1));
  CHECK(bucket.acquire("a", 1, 1s));
  CHECK(o.others() == Lines{"wait api a begun", "wait api a granted after 0 us"});
  CHECK(bucket.acquire("a", 1, 1s));
  CHECK(o.others() == Lines{"wait api a begun", "wait api a granted for api after 100000 us"});
  CHECK_FALSE(bucket.acquire("a", 1, 99ms));
  CHECK(o.others() == Lines{"wait api a begun", "wait api a refused for api after 0 us"});
}

TEST_CASE("a wait for several limits tells which one held it up", "[observe][waits]") {
  Observed o;
  const TokenBucket bucket(o.store, "calls", Quota::per_second(10).burst(1));
  const TokenBucket tokens(o.store, "tokens", Quota::per_second(1).burst(1));
  const std::vector<Claim> claims{{bucket, "a"}, {tokens, "a"}};
  const Grants first = acquire(claims, 1s);
  CHECK(first);
  (void)o.events.take();
  const Grants second = acquire(claims, 2s);
  CHECK(second);
  CHECK(o.others() ==
        Lines{"wait calls a begun", "wait calls a granted for tokens after 1000000 us"});
}

TEST_CASE("waits that are stopped, or whose store fails, are told so", "[observe][waits]") {
  VirtualClock clock;  // which stands still
  Observed o;
  ObservedStore store(make_virtual_store(clock), o.events);
  const TokenBucket bucket(store, "api", Quota::per_hour(1).burst(1));
  REQUIRE(bucket.try_acquire("a"));
  StopSource stop;
  std::thread stops([&] {
    while (bucket.waiting("a") == 0) std::this_thread::yield();
    stop.request_stop();
  });
  CHECK_THROWS(bucket.acquire("a", 1, Deadline::never(), {.stop = stop.get_token()}));
  stops.join();
  const auto ends_as = [&](const char* result) {
    const Lines lines = o.others();
    REQUIRE(lines.size() == 2);
    CHECK(lines.back().rfind("wait api a " + std::string(result), 0) == 0);
  };
  ends_as("cancelled");
  CHECK_THROWS(bucket.acquire("a", -1, 1s));
  ends_as("failed after");
}

TEST_CASE("a lease is told when it is granted, released and lost", "[observe][leases]") {
  Observed o;
  LeaseRenewer renewer(o.clock, Renewing::by_hand);
  const ConcurrencyLimiter places(o.store, "jobs", 2, {.ttl = 30s, .renewer = &renewer});
  {
    Lease lease = places.try_acquire("a", 2);
    CHECK(o.others() == Lines{"lease jobs a 2 granted"});
    const Lease refused = places.try_acquire("a");
    CHECK_FALSE(refused);
    CHECK(o.others().empty());
    lease.release();
    CHECK(o.others() == Lines{"lease jobs a 2 released"});
  }
  { const Lease lease = places.try_acquire("a"); }
  CHECK(o.others() == Lines{"lease jobs a 1 granted", "lease jobs a 1 released"});
  {
    const Lease lease = places.try_acquire("a");
    o.clock.advance(31s);
    renewer.renew_due();
    renewer.renew_due();
  }
  CHECK(o.others() == Lines{"lease jobs a 1 granted", "lease jobs a 1 lost"});
}

TEST_CASE("a renewal that fails is told, and a loss is told once", "[observe][leases]") {
  Observed o;
  testing::FaultyStore faulty(o.store);
  LeaseRenewer renewer(o.clock, Renewing::by_hand);
  const ConcurrencyLimiter places(faulty, "jobs", 2, {.ttl = 30s, .renewer = &renewer});
  Lease lease = places.try_acquire("a");
  (void)o.events.take();
  faulty.fail_all(testing::Fault::not_executed());
  o.clock.advance(11s);
  renewer.renew_due();
  CHECK(o.others() == Lines{"lease jobs a 1 renewal failed"});
  o.clock.advance(20s);
  renewer.renew_due();
  (void)o.events.take();
  const StopToken lost = lease.lost_token();
  CHECK(lost.stop_requested());
  faulty.heal();
  CHECK(o.events.take().empty());
}

TEST_CASE("a lease that must not block is told when it is released", "[observe][leases]") {
  /// As on the thread of an event loop.
  class Loop final : public StoreWrapper {
   public:
    using StoreWrapper::StoreWrapper;
    [[nodiscard]] bool may_block() const noexcept override { return !on_loop; }
    bool on_loop = false;
  };
  Observed o;
  Loop loop(o.store);
  const ConcurrencyLimiter places(loop, "jobs", 1);
  {
    const Lease lease = places.try_acquire("a");
    loop.on_loop = true;
  }
  loop.on_loop = false;
  CHECK(o.others() == Lines{"lease jobs a 1 granted", "lease jobs a 1 released"});
  const Lease next = places.try_acquire("a");
  CHECK(next);
}

TEST_CASE("a breaker tells of its changes, and a Call of each try that failed",
          "[observe][calls]") {
  Observed o;
  CircuitBreaker breaker(o.clock, {.failures = 1}, observe_breaker(o.events, "redis"));
  breaker.answer(breaker.ask(), CircuitBreaker::Result::failure);
  CHECK(o.events.take() == Lines{"breaker redis part 0 0 to 1"});
  const TokenBucket bucket(o.store, "api", Quota::per_second(1000));
  const Call call({{bucket, "a"}}, {.attempts = 3});
  int tries = 0;
  CHECK_THROWS_AS(call([&] {
                    if (++tries == 2) throw RateLimited(1s);
                    throw Transient();
                  }),
                  Transient);
  Lines lines = o.others();
  std::erase_if(lines, [](const std::string& line) { return line.rfind("wait", 0) == 0; });
  CHECK(lines == Lines{"call api transient try 1, again", "call api rate_limited try 2, again",
                       "call api transient try 3, given up"});
}

}  // namespace sluice::test
