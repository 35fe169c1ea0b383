// Lines across processes while their store is away: the policies hold.
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/fixed_window.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

constexpr WaitQueueOptions across{.across_processes = true, .client = 1};

TEST_CASE("a line across processes is granted by an open door and by a local share",
          "[fallback][waiting][processes]") {
  for (const bool is_open : {true, false}) {
    CAPTURE(is_open);
    Rig rig = is_open ? Rig(FailurePolicy::open()) : Rig(2);
    const ConcurrencyLimiter jobs(rig.store, "jobs", 4);
    const FixedWindow window(rig.store, "calls", 4, Calendar::every(1min));
    jobs.set_wait_queue(across);
    window.set_wait_queue(across);
    rig.trip();
    std::error_code error;
    const Lease lease = jobs.acquire("a", 1, 1s, {}, error);
    CHECK_FALSE(error);
    CHECK(lease);
    CHECK(window.acquire("a", 1, 1s, {}, error).allowed);
    CHECK_FALSE(error);
  }
}

TEST_CASE("a line across processes waits at a closed door until the store is back",
          "[fallback][waiting][processes]") {
  Rig rig(FailurePolicy::closed(), {.failures = 3, .longest_pause = 10s});
  const FixedWindow window(rig.store, "calls", 4, Calendar::every(1min));
  window.set_wait_queue(across);
  rig.trip();
  bool granted = false;
  std::error_code failed;
  const auto wait = wait_for(window, request_of(window, "a", 1), 5min,
                             [&](std::error_code error, const Decision& decision) {
                               failed = error;
                               granted = decision.allowed;
                             });
  const auto asked = rig.primary.counts().calls;
  rig.clock.advance(30s);
  CHECK_FALSE(granted);
  CHECK(rig.primary.counts().calls - asked < 40);  // probes, and no storm
  rig.primary.heal();
  for (int i = 0; i < 60 && !granted; ++i) rig.clock.advance(1s);
  CHECK(granted);
  CHECK_FALSE(failed);
}

}  // namespace sluice::test
