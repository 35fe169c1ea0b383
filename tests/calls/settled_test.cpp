// What a settlement or a refund gives back goes at once to a caller that waits. Threading:
// everything on the thread that moves the clock.
#include <vector>

#include "sluice/sluice.hpp"
#include "sluice/testing.hpp"
#include "tests/catch.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

TEST_CASE("what a refund of several limits gives back is granted at once", "[claims]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  const FixedWindow first(*store, "first", 5, Calendar::every(1h));
  const FixedWindow second(*store, "second", 5, Calendar::every(1h));
  Grants held = acquire({{first, "a", 5}, {second, "a", 5}}, 0s);
  REQUIRE(held);
  int granted = 0;
  const auto count = [&](std::error_code error, const Decision& grant) {
    if (!error && grant) ++granted;
  };
  const auto one = wait_for(first, {"a", 5}, Deadline::never(), count);
  const auto other = wait_for(second, {"a", 5}, Deadline::never(), count);
  CHECK(granted == 0);
  held.refund();
  CHECK(granted == 2);
}

TEST_CASE("what gives nothing back wakes nobody, and a lease wakes once it is released",
          "[claims][leases]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  testing::FaultyStore counting(*store);
  const auto operations = [&] { return counting.counts().calls; };
  const FixedWindow window(counting, "w", 5, Calendar::every(1h));
  Grants dear = acquire({{window, "a", 4}}, 0s);
  const auto ignore = [](std::error_code, const auto&) {};
  const auto waits = wait_for(window, {"a", 2}, Deadline::never(), ignore);
  std::uint64_t before = operations();
  dear.settle(0, 5);
  CHECK(operations() == before + 1);

  const ConcurrencyLimiter jobs(counting, "jobs", 1, {.ttl = 1h});
  Grants held = acquire({{jobs, "a"}}, 0s);
  std::vector<Lease> granted;
  const auto keep = [&](std::error_code error, Lease lease) {
    if (!error && lease) granted.push_back(std::move(lease));
  };
  const auto request = [&] { return request_of(jobs, "a", 1); };
  const auto one = wait_for(jobs, request(), Deadline::never(), keep);
  const auto other = wait_for(jobs, request(), Deadline::never(), keep);
  before = operations();
  held.refund();
  CHECK(granted.size() == 1);
  CHECK(operations() == before + 3);  // the release, the grant, and a refusal of the other
  other->cancel();
  waits->cancel();
}

}  // namespace sluice::test
