// Leases that were granted on one side of an outage and given back on the other.
#include "sluice/calls/acquire.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/fallback/rig.hpp"

namespace sluice::test {
namespace {

Word held(Store& store) { return 4 - ConcurrencyLimiter(store, "jobs", 4).peek("a").remaining; }

}  // namespace

TEST_CASE("a lease is given back where it was granted, on whichever side of the outage",
          "[fallback][C-036]") {
  Rig rig(2);
  const ConcurrencyLimiter jobs(rig.store, "jobs", 4);
  Lease before = jobs.try_acquire("a");
  REQUIRE(before);
  rig.trip();
  Lease during = jobs.try_acquire("a");
  Lease brief = jobs.try_acquire("a");
  REQUIRE((during && brief));
  CHECK(during.decision().source == Source::fallback);
  CHECK(during.fence() == 0);
  CHECK_FALSE(jobs.try_acquire("a").decision().allowed);
  CHECK(held(*rig.local) == 2);

  CHECK(brief.release());
  CHECK(held(*rig.local) == 1);
  CHECK(during.renew());
  std::error_code error;
  CHECK_FALSE(before.release(error));  // the primary has it, and was not asked
  CHECK(error == Errc::circuit_open);
  CHECK(before);

  rig.primary.heal();
  rig.clock.advance(20s);
  CHECK(during.renew());  // the primary knows nothing of it
  CHECK(during.release());
  CHECK(held(*rig.local) == 0);
  CHECK(before.release());
  CHECK(held(*rig.whole) == 0);
}

TEST_CASE("a lease that has ended during an outage is given back after it", "[fallback]") {
  for (const FailurePolicy& policy : {FailurePolicy::open(), FailurePolicy::closed()}) {
    Rig rig(policy);
    const ConcurrencyLimiter jobs(rig.store, "jobs", 4, {.ttl = 1h});
    std::vector<Lease> leases;
    for (int i = 0; i < 3; ++i) leases.push_back(jobs.try_acquire("a"));
    rig.trip();
    leases.clear();
    CHECK(held(*rig.whole) == 3);
    rig.clock.advance(20s);
    rig.primary.fail_all(Fault::none().late(1ms));
    static_cast<void>(jobs.try_acquire("b"));  // the breaker lets one request through, then all
    rig.clock.advance(1s);
    CHECK(held(*rig.whole) == 0);
  }
}

TEST_CASE("what the primary has granted without an answer is given back behind it", "[fallback]") {
  Rig rig(2);
  const ConcurrencyLimiter jobs(rig.store, "jobs", 4);
  const TokenBucket bucket(rig.store, "bucket", Quota::per_second(10));
  rig.primary.fail_call(1, Fault::answer_lost());
  const Lease lease = jobs.try_acquire("a");
  REQUIRE(lease.decision().source == Source::fallback);
  rig.primary.fail_call(1, Fault::answer_lost());
  const Grants grants = acquire({{bucket, "a"}, {jobs, "a"}}, 0s);
  REQUIRE(grants);
  REQUIRE(bucket.peek("b").source == Source::virtual_store);  // the breaker stays closed
  const ConcurrencyLimiter others(rig.store, "others", 4);
  rig.primary.fail_call(1, Fault::answer_lost());
  const Grants both = acquire({{others, "a"}, {jobs, "b"}}, 0s);
  REQUIRE(both);
  CHECK(ConcurrencyLimiter(*rig.whole, "jobs", 4).peek("b").remaining == 4);
  CHECK(held(*rig.local) == 2);
  CHECK(held(*rig.whole) == 0);

  const LeaseId id{1, 2};
  rig.primary.fail_call(1, Fault::answer_lost());
  static_cast<void>(jobs.try_acquire("a", 1, id));
  CHECK(held(*rig.whole) == 1);  // its holder can ask again
}

TEST_CASE("a plan with the return of a lease and more has no answer without its store",
          "[fallback]") {
  Rig rig(2);
  const ConcurrencyLimiter jobs(rig.store, "jobs", 4);
  const Lease lease = jobs.try_acquire("a");
  rig.trip();
  const Step returned = jobs.release_step("a", lease.id());
  const Step taken{&token_bucket_acquire, {"a", "b"}, {5, 1, 1, 5, 1}};
  for (const auto& steps : {std::array{returned, taken}, std::array{taken, returned}}) {
    std::error_code error;
    (void)decide(rig.store, steps, error);
    CHECK(error == Errc::circuit_open);  // the local store would say that there is no such lease
  }
  CHECK(held(*rig.whole) == 1);
}

TEST_CASE("a lease that a longer plan was granted without the store is given back after it",
          "[fallback]") {
  Rig rig(2);
  const ConcurrencyLimiter jobs(rig.store, "jobs", 4);
  rig.trip();
  const LeaseId id{1, 2};
  const Key key{"a", "jobs:4"};
  const Step taken{&token_bucket_acquire, {"a", "b"}, {5, 1, 1, 5, 1}};
  REQUIRE(decide(rig.store, std::array{jobs.acquire_step(key, id), taken}));
  rig.primary.heal();
  rig.clock.advance(20s);
  REQUIRE(decide(rig.store, jobs.release_step(key, id)).source == Source::fallback);
}

}  // namespace sluice::test
