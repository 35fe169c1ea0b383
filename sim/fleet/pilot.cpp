#include "sim/fleet/pilot.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/fixed_point.hpp"
#include "sim/fleet/fleet_run.hpp"
#include "sim/judges/judges.hpp"
#include "sim/scenario/effects.hpp"
#include "sim/scenario/parameters.hpp"
#include "sluice/sim/truncation.hpp"

namespace sluice::sim {
namespace scenario {
namespace {

constexpr std::uint64_t pilot_seeds = 0x70696c6f74;  // a purpose of stream()
constexpr Word steps = 1000;
constexpr Word thousandths = 1000;

/// What ends the time that the pilots look at, and when.
struct Disturbance {
  std::string what;  // "": nothing does
  Span at;
};

Disturbance first_disturbance(const Scenario& scenario) {
  Disturbance first{"", scenario.duration};
  if (scenario.arrivals.kind == ArrivalOptions::Kind::spike &&
      scenario.arrivals.from < scenario.duration) {
    first = {"arrivals.from", scenario.arrivals.from};
  }
  for (const FaultPlan& fault : scenario.faults) {
    if (fault.at < first.at)
      first = {"the fault " + std::string(info_of(fault.kind).name), fault.at};
  }
  return first;
}

/// The jobs without an answer over time.
class Level {
 public:
  explicit Level(Span step) : step_(step), sums_(steps) {}

  void see(const JobEvent& event) {
    advance(event.at);
    const bool comes = event.what == JobEvent::What::came;
    const bool goes = event.what == JobEvent::What::gave_up || event.what == JobEvent::What::lost ||
                      (event.what == JobEvent::What::answered && event.status == 200);
    if (comes) ++level_;
    if (goes) --level_;
  }

  /// The mean of each step, after the last.
  std::vector<std::uint64_t> take() {
    advance(step_ * steps);
    for (std::uint64_t& sum : sums_) {
      sum = static_cast<std::uint64_t>(fixed::Wide{sum} * thousandths /
                                       static_cast<std::uint64_t>(step_.count()));
    }
    return std::move(sums_);
  }

 private:
  void advance(Span now) {
    now = std::min(now, step_ * steps);
    while (last_ < now) {
      const Span next = std::min(now, (last_ / step_ + 1) * step_);
      sums_[static_cast<std::size_t>(last_ / step_)] +=
          level_ * static_cast<std::uint64_t>((next - last_).count());
      last_ = next;
    }
  }

  Span step_;
  Span last_{0};
  std::uint64_t level_ = 0;
  std::vector<std::uint64_t> sums_;  // of jobs * microseconds
};

}  // namespace

void validate_pilots(const Scenario& scenario) {
  if (scenario.arrivals.kind == ArrivalOptions::Kind::bursts) {
    throw std::invalid_argument(
        "run.warm_up = \"auto\" needs arrivals that go on, and arrivals.kind is bursts: set "
        "run.warm_up to a time");
  }
  const Disturbance first = first_disturbance(scenario);
  if (first.at >= Span{steps}) return;
  throw std::invalid_argument(
      "run.warm_up = \"auto\" looks at the time " +
      (first.what.empty() ? "of the run"
                          : "before " + first.what + " at " + seconds_text(first.at)) +
      ", which must be 1ms or longer: " +
      (first.what.empty() ? "make run.duration longer" : "let that be later") +
      ", or set run.warm_up to a time");
}

std::vector<std::uint64_t> run_pilot(const Scenario& scenario, std::size_t pilot,
                                     const MakeRehearsedClient& make,
                                     const std::atomic<bool>* stop) {
  Scenario start = scenario;
  start.warm_up = Span{0};
  start.duration = first_disturbance(scenario).at;
  start.faults.clear();
  if (pilot != 0) {
    start.seed =
        stream(scenario.seed, pilot, pilot_seeds).next() % static_cast<std::uint64_t>(word_limit);
  }
  FleetRun fleet(start, make);
  const Span step = start.duration / steps;
  Level level(step);
  fleet.recorder().on_event = [&level](const JobEvent& event) { level.see(event); };
  try {
    for (Word i = 0; i < steps; ++i) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw Stopped();
      fleet.run_for(step);
    }
  } catch (const EndlessInstant& instant) {
    const Span at = instant.at() - VirtualClock::default_start;
    throw std::runtime_error(
        object_to_instant(instant, at, fleet.recorder().last_events(instant.at())).text +
        ", in a pilot of run.warm_up = \"auto\"; a run with a seed of " +
        std::to_string(start.seed) + " and a warm-up of 0s repeats it");
  }
  return level.take();
}

Span warm_up_by(const Scenario& scenario, const std::vector<std::vector<std::uint64_t>>& series) {
  std::vector<std::uint64_t> sum(steps);
  for (const std::vector<std::uint64_t>& each : series) {
    std::ranges::transform(sum, each, sum.begin(), std::plus<>());
  }
  const Truncation truncation = mser5(sum);
  const Disturbance first = first_disturbance(scenario);
  const Span cut = first.at / steps * static_cast<Word>(Truncation::batch * truncation.cut);
  if (truncation.is_settled()) return cut;
  const std::string where =
      first.what.empty() ? std::string("the run") : "the time before " + first.what;
  throw std::invalid_argument(
      where +
      " is too short for its warm-up: run.warm_up = \"auto\" (MSER-5) would cut the first " +
      seconds_text(cut) + " of " + seconds_text(first.at) +
      ", more than half: make it several times as " +
      "long, or set run.warm_up to a time; under an overload, nothing settles");
}

}  // namespace scenario

Span find_warm_up(const Scenario& scenario, const MakeRehearsedClient& make,
                  const std::atomic<bool>* stop) {
  (make ? scenario::validate_values : validate)(scenario);
  scenario::validate_pilots(scenario);
  std::vector<std::vector<std::uint64_t>> series;
  for (std::size_t pilot = 0; pilot < scenario::pilots; ++pilot) {
    series.push_back(scenario::run_pilot(scenario, pilot, make, stop));
  }
  return scenario::warm_up_by(scenario, series);
}

}  // namespace sluice::sim
