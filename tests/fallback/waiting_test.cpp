// Callers that wait while the primary is away, in time that moves by itself.
#include "sluice/concurrency_limiter.hpp"
#include "sluice/token_bucket.hpp"
#include "tests/fallback/rig.hpp"

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
    Alarm alarm;
    FaultyStore& primary;
    explicit Healing(FaultyStore& store)
        : alarm([](void* self) noexcept { static_cast<Healing*>(self)->primary.heal(); }, this),
          primary(store) {}
  } healing(rig.primary);
  REQUIRE(rig.clock.set_alarm(healing.alarm, start + 60s) == AlarmState::set);

  const Reservation grant = bucket.acquire("a", 1, 10min);
  CHECK(grant);
  CHECK(grant.decision.source == Source::virtual_store);
  CHECK(rig.clock.now() >= start + 60s);
  CHECK(rig.clock.now() <= start + 60s + 10s + 1s);
  // Each pause is asked for once, and its probe is the caller's own.
  CHECK(rig.primary.counts().calls == asked + rig.breaker.stats().probes);
  CHECK(rig.store.stats().degraded_refusals <= 2 * rig.breaker.stats().probes + 3);
}

TEST_CASE("under closed, a wait ends with its deadline, refused", "[fallback][waiting]") {
  Rig rig(FailurePolicy::closed());
  const TokenBucket bucket(rig.store, "b", Quota::per_second(10).burst(5));
  rig.trip();
  const VirtualClock::AutoAdvance moving(rig.clock);
  const Time start = rig.clock.now();
  const Reservation refused = bucket.acquire("a", 1, 30s);
  CHECK_FALSE(refused);
  CHECK(refused.decision.source == Source::policy);
  CHECK(rig.clock.now() <= start + 30s);
}

TEST_CASE("under local, who waits waits for its share", "[fallback][waiting]") {
  Rig rig(5);
  const TokenBucket bucket(rig.store, "b", Quota::per_second(10).burst(5));
  rig.trip();
  const VirtualClock::AutoAdvance moving(rig.clock);
  const Time start = rig.clock.now();
  for (int i = 0; i < 5; ++i) CHECK(bucket.acquire("a", 1, 10s));
  CHECK(rig.clock.now() == start + 4 * 500ms);
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
