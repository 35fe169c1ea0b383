// Pictures of what keeps a fleet in hand: leases, tiers, slots, gates and the utilization shedder.
#include <array>
#include <deque>

#include "docs/pictures/overloaded_service.hpp"
#include "docs/pictures/pictures.hpp"
#include "docs/pictures/world.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/fleet_shedder.hpp"
#include "sluice/limiters/gates.hpp"
#include "sluice/limiters/slot_lock.hpp"

namespace sluice::pictures {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A lease whose holder is done at a time, or dies without a word.
struct Job {
  Lease lease;
  double done;
};

void finish(std::deque<Job>& jobs, double now) {
  std::erase_if(jobs, [&](Job& job) { return job.done <= now; });
}

}  // namespace

void leases(std::ostream& out) {
  World world;
  const ConcurrencyLimiter limit(*world.store, "jobs", 20, {.ttl = seconds{10}});
  std::deque<Job> jobs;
  std::deque<Job> lost;  // whose holders died
  Block held;
  Block refused;
  world.tick_until(600, 0.1, [&](int tick, double at) {
    finish(jobs, at);
    if (tick == 250) {  // half of the holders die
      for (std::size_t dead = jobs.size() / 2; dead > 0; --dead) {
        lost.push_back(std::move(jobs.front()));
        jobs.pop_front();
      }
    }
    if (world.happens(at < 15 ? 4 : 8, 0.1)) {
      if (Lease lease = limit.try_acquire("alice")) {
        const double work = 1 + static_cast<double>(world.rng.below(300)) / 100;
        jobs.push_back({std::move(lease), at + work});
      } else {
        refused.add({at, 20});
      }
    }
    held.add({at, 20 - static_cast<double>(limit.peek("alice").remaining),
              static_cast<double>(jobs.size())});
  });
  held.print(out, "seconds, places taken of 20, holders alive");
  refused.print(out, "refused: seconds, limit");
}

void fleet_shedder(std::ostream& out) {
  World world;
  const FleetShedder fleet(
      *world.store, "api", 100,
      {{"critical", FleetShare::percent(100)}, {"sheddable", FleetShare::percent(80)}},
      {.ttl = seconds{30}});
  const std::array<std::string_view, 2> names{"critical", "sheddable"};
  std::array<std::deque<Job>, 2> jobs;
  Block used;
  std::array<int, 2> refused{};
  world.tick_until(6000, 0.01, [&](int tick, double at) {
    const std::array<double, 2> rates{at < 35 ? 8.0 : 45.0, at < 15 ? 15.0 : 60.0};
    for (std::size_t tier = 0; tier < 2; ++tier) {
      finish(jobs[tier], at);
      if (!world.happens(rates[tier], 0.01)) continue;
      if (Lease lease = fleet.try_acquire(names[tier])) {
        const double work = 1 + static_cast<double>(world.rng.below(200)) / 100;
        jobs[tier].push_back({std::move(lease), at + work});
      } else {
        ++refused[tier];
      }
    }
    if (tick % 40 == 0) {
      used.add({at, static_cast<double>(jobs[0].size() + jobs[1].size()),
                static_cast<double>(jobs[0].size()), refused[0] * 2.5, refused[1] * 2.5});
      refused = {};
    }
  });
  used.print(out, "seconds, in use of 100, of it critical, refused a second: critical, sheddable");
}

void slot_lock(std::ostream& out) {
  World world;
  const SlotLock lock(*world.store, "upstream", seconds{1});
  Block permits;
  Block refused;
  world.tick_until(400, 0.1, [&](int /*tick*/, double at) {
    const double rate = at > 5 && at < 11 ? 2.5 : at > 26 && at < 30 ? 4 : 0.5;
    if (!world.happens(rate, 0.1)) return;
    const SlotPermit permit = lock.reserve("token", seconds{8});
    if (permit) {
      permits.add({at, at + static_cast<double>(permit.retry_after.count()) / 1e6});
    } else {
      refused.add({at, at});
    }
  });
  permits.print(out, "seconds: asked, slot");
  refused.print(out, "refused, the next slot is more than 8 s ahead: seconds, the same");
}

void gates(std::ostream& out) {
  World world;
  const Gates gates(*world.store, "adwords", {"account"},
                    {.ramp = seconds{8}, .spacing = milliseconds{500}});
  const Scope scope = gates.scope("account", "7");
  Block passed;
  Block refused;
  Block closed;
  const std::array<std::pair<int, int>, 3> closings{{{60, 6}, {80, 9}, {100, 2}}};
  world.tick_until(400, 0.1, [&](int tick, double at) {
    for (const auto& [when, span] : closings) {
      if (tick != when) continue;
      gates.close(scope, seconds{span});
      closed.add({at, at + span});
    }
    if (world.happens(5, 0.1)) (gates.pass(scope) ? passed : refused).add({at});
  });
  passed.print(out, "passed: seconds");
  refused.print(out, "refused: seconds");
  closed.print(out, "the upstream says so: seconds, closed until");
}

void utilization(std::ostream& out) {
  SeededRng rng(2026);
  OverloadedService service(rng);
  Block block;
  for (const auto& second :
       service.run(900, [](int t) { return t >= 60 && t < 480 ? 4.0 : 0.5; })) {
    if (second.at % 8 != 0) continue;
    block.add({static_cast<double>(second.at), second.offered, second.admitted, second.utilization,
               second.amount, second.shed[0], second.shed[1], second.shed[2]});
  }
  block.print(
      out,
      "seconds, offered and admitted load, utilization, amount, shed of test, of analytics, "
      "of payments");
}

}  // namespace sluice::pictures
