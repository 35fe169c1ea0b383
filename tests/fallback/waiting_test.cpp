// Callers that wait while the primary is away, in time that moves by itself.
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

TEST_CASE("under closed, who waits comes back at the hints until the primary is back",
          "[fallback][waiting][C-036]") {
  Rig rig(FailurePolicy::closed());
  const TokenBucket bucket(rig.store, "b", Quota::per_second(10).burst(5));
  rig.trip();
  const auto asked = rig.primary.counts().calls;
  const VirtualClock::AutoAdvance moving(rig.clock);
  const Time start = rig.clock.now();
  // The outage ends while the caller waits.
  struct Healing {
    TimerCallback timer;
    FaultyStore& primary;
    explicit Healing(FaultyStore& store)
        : timer([](void* self) noexcept { static_cast<Healing*>(self)->primary.heal(); }, this),
          primary(store) {}
  } healing(rig.primary);
  REQUIRE(rig.clock.set_timer(healing.timer, start + 60s) == TimerState::set);

  const Reservation grant = bucket.acquire("a", 1, 10min);
  CHECK(grant);
  CHECK(grant.source == Source::virtual_store);
  CHECK(rig.clock.now() >= start + 60s);
  CHECK(rig.clock.now() <= start + 60s + 10s + 1s);
  // Each pause is asked for once, and its probe is the caller's own.
  CHECK(rig.primary.counts().calls == asked + rig.breaker.stats().probes);
  CHECK(rig.store.stats().degraded_refusals <= 2 * rig.breaker.stats().probes + 3);
}

TEST_CASE("where the store hangs, the policy answers a wait whose deadline is near",
          "[fallback][waiting]") {
  for (const Span deadline : {Span{1us}, Span{20ms}, Span{90ms}, Span{200ms}}) {
    CAPTURE(deadline);
    Rig rig(2);
    const TokenBucket bucket(rig.store, "b", Quota::per_second(10).burst(5));
    rig.primary.fail_all(Fault::request_lost().late(100ms));  // within
    Reservation grant;
    const auto wait = wait_for(bucket, request_of(bucket, "a", 1), deadline,
                               [&](std::error_code, const Reservation& given) { grant = given; });
    rig.clock.advance(100ms);
    CHECK(grant);
    CHECK(grant.source == Source::fallback);
  }
}

TEST_CASE("under open, nobody who waits is kept to the rate of the limit", "[fallback][waiting]") {
  Rig rig(FailurePolicy::open());
  const TokenBucket bucket(rig.store, "b", Quota::per_minute(1).burst(1));
  REQUIRE(bucket.try_acquire("a"));
  int granted = 0;
  std::vector<std::shared_ptr<Probe<TokenBucket>>> waits;
  for (int i = 0; i < 5; ++i) {
    waits.push_back(wait_for(bucket, request_of(bucket, "a", 1), 1h,
                             [&](std::error_code, const Reservation& grant) {
                               if (grant) ++granted;
                             }));
  }
  rig.trip();
  rig.clock.advance(1min);
  CHECK(granted == 5);
}

TEST_CASE("under local, who comes too late for its share is refused at once, with its hint",
          "[fallback][waiting]") {
  Rig rig(2);
  const TokenBucket bucket(rig.store, "b", Quota::per_second(1).burst(2));
  rig.trip();
  REQUIRE(bucket.try_acquire("a"));
  const auto request = [&] { return request_of(bucket, "a", 1); };
  std::vector<Reservation> ends;
  const auto note = [&](std::error_code, const Reservation& end) { ends.push_back(end); };
  const auto first = wait_for(bucket, request(), 10s, note);  // rests for its share
  CHECK(ends.empty());
  for (const bool again : {false, true}) {
    ends.clear();
    const auto hasty = wait_for(bucket, request(), 1s, note);
    REQUIRE(ends.size() == 1);
    CHECK_FALSE(ends[0]);
    CHECK(ends[0].retry_after == (again ? 1900ms : 2s));
    ends.clear();
    if (!again) rig.clock.advance(100ms);
  }
  rig.clock.advance(1900ms - 1us);
  CHECK(ends.empty());
  rig.clock.advance(1us);
  REQUIRE(ends.size() == 1);
  CHECK(ends[0]);
}

TEST_CASE("under local, who waits behind another process has its share once the store is away",
          "[fallback][waiting]") {
  Rig rig(2);
  const ConcurrencyLimiter ahead(*rig.whole, "jobs", 2, {.ttl = 1h});
  const ConcurrencyLimiter behind(rig.store, "jobs", 2, {.ttl = 1h});
  const Lease all = ahead.try_acquire("a", 2);
  Lease granted;
  const auto first = wait_for(ahead, request_of(ahead, "a", 1), Deadline::never(),
                              [](std::error_code, const Lease&) {});
  rig.clock.advance(1ms);
  const auto second = wait_for(behind, request_of(behind, "a", 1), Deadline::never(),
                               [&](std::error_code, Lease lease) { granted = std::move(lease); });
  rig.clock.advance(1ms);
  rig.trip();
  CHECK_FALSE(granted);
  rig.clock.advance(WaitQueueOptions{}.ticket_ttl);
  CHECK(granted.decision().source == Source::fallback);
  first->cancel();
}

TEST_CASE("under local, a place that comes back wakes who waits for it", "[fallback][waiting]") {
  Rig rig(2);
  const ConcurrencyLimiter jobs(rig.store, "jobs", 2, {.ttl = 10s});
  rig.trip();
  const VirtualClock::AutoAdvance moving(rig.clock);
  Lease first = jobs.try_acquire("a");
  REQUIRE(first);
  const Time start = rig.clock.now();
  const Lease second = jobs.acquire("a", 1, 1min);
  CHECK(second);
  CHECK(rig.clock.now() == start + 10s);
}

}  // namespace sluice::test
