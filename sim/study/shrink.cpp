#include "sim/study/shrink.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/judges/judges.hpp"
#include "sim/scenario/effects.hpp"
#include "sluice/sim/run.hpp"

namespace sluice::sim::scenario {
namespace {

constexpr std::size_t most_runs = 2000;
constexpr Span shortest = std::chrono::milliseconds{1};
constexpr double least_factor = 0.1;  // away from a fault that does nothing
constexpr double least_share = 0.05;
constexpr std::uint64_t enough_for_an_instant = 1'000'000;

class Shrinker {
 public:
  Shrinker(const Study& study, const std::function<bool(const Study&)>& objects,
           const std::function<void(const Shrunk&)>& progress)
      : objects_(objects), progress_(progress) {
    result_.study = study;
  }

  Shrunk run() {
    try {
      make_smaller();
    } catch (const Stopped&) {
      result_.partial = true;
    }
    return result_;
  }

 private:
  void make_smaller() {
    result_.fails = fails(result_.study);
    if (!result_.fails) return;
    for (bool smaller = true; smaller && result_.runs < most_runs;) {
      smaller = drop_faults();
      smaller = end_sooner() || smaller;
      smaller = lower("fleet.workers", result_.study.scenario(0, 0).fleet.workers) || smaller;
      smaller = fewer_keys() || smaller;
      smaller = weaken_faults() || smaller;
    }
  }

  bool fails(const Study& study) {
    ++result_.runs;
    if (progress_) progress_(result_);
    try {
      const Scenario scenario = study.scenario(0, 0);
      validate_recovery(scenario, study.judges.recovery);
      return objects_(study);
    } catch (const std::invalid_argument&) {
      return false;  // what is left of it is no scenario
    }
  }

  bool keep_if_fails(Study smaller) {
    drop_idle(smaller);
    if (!fails(smaller)) return false;
    result_.study = std::move(smaller);
    return true;
  }

  /// ddmin over the faults: removes ever smaller parts of the list.
  bool drop_faults() {
    bool any = false;
    for (std::size_t part = result_.study.faults.size(); part > 0; part /= 2) {
      for (std::size_t at = 0; at < result_.study.faults.size();) {
        Study smaller = result_.study;
        const auto first = smaller.faults.begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = std::min(part, smaller.faults.size() - at);
        smaller.faults.erase(first, first + static_cast<std::ptrdiff_t>(count));
        if (keep_if_fails(std::move(smaller))) {
          any = true;
        } else {
          at += part;
        }
      }
    }
    return any;
  }

  bool end_sooner() {
    const Span whole = result_.study.scenario(0, 0).duration;
    for (const Word tenths : {5, 8, 9}) {
      if (set("run.duration", std::to_string((whole * tenths / 10).count()) + "us")) return true;
    }
    return false;
  }

  bool lower(const char* path, std::uint32_t now) {
    for (const std::uint32_t fewer : {1U, now / 4, now / 2, now - 1}) {
      if (fewer != 0 && fewer < now && set(path, std::to_string(fewer))) return true;
    }
    return false;
  }

  bool fewer_keys() {
    const Scenario scenario = result_.study.scenario(0, 0);
    // Those of a trace are what its file has.
    return !scenario.arrivals.trace && lower("jobs.keys", scenario.jobs.keys);
  }

  bool weaken_faults() {
    bool any = false;
    for (std::size_t i = 0; i < result_.study.faults.size(); ++i) {
      for (const FaultPlan& weaker : weaker_than(result_.study.faults[i])) {
        Study smaller = result_.study;
        smaller.faults[i] = weaker;
        if (!keep_if_fails(std::move(smaller))) continue;
        any = true;
        break;  // the next round goes on from there
      }
    }
    return any;
  }

  /// Shorter, fewer workers, a factor that does less.
  static std::vector<FaultPlan> weaker_than(const FaultPlan& fault) {
    const FaultInfo& info = info_of(fault.kind);
    std::vector<FaultPlan> all;
    if (fault.length > shortest) all.emplace_back(fault).length = fault.length / 2;
    // A share of the workers that stay is nearer to nothing the larger it is.
    const double away = fault.kind == FaultPlan::Kind::scale ? 1 - fault.share : fault.share;
    if (info.has(FaultInfo::takes_share) && away > least_share) {
      all.emplace_back(fault).share =
          fault.kind == FaultPlan::Kind::scale ? 1 - away / 2 : away / 2;
    }
    const double harmless = info.harmless();
    if (info.has(FaultInfo::takes_factor) && std::abs(fault.factor - harmless) > least_factor) {
      all.emplace_back(fault).factor = harmless + (fault.factor - harmless) / 2;
    }
    return all;
  }

  bool set(const std::string& path, const std::string& text) {
    Study smaller = result_.study;
    std::erase_if(smaller.settings, [&](const Setting& each) { return each.path == path; });
    smaller.settings.push_back({path, {text}});
    return keep_if_fails(std::move(smaller));
  }

  const std::function<bool(const Study&)>& objects_;
  const std::function<void(const Shrunk&)>& progress_;
  Shrunk result_;
};

}  // namespace

std::vector<std::string> objectors(const Study& study, const std::atomic<bool>* stop) {
  const RunResult result = sim::run(
      study.scenario(0, 0), {.recovery = study.judges.recovery, .stop = stop, .progress = {}});
  std::vector<std::string> names;
  for (const Objection& objection : result.objections) names.push_back(objection.judge);
  for (const std::string& name : study.judges.never) {
    if (result.figures[metric(name)] > 0) names.push_back("never " + name);
  }
  return names;
}

Shrunk shrink_while(const Study& study, const std::function<bool(const Study&)>& objects,
                    const std::function<void(const Shrunk&)>& progress) {
  return Shrinker(study, objects, progress).run();
}

Shrunk shrink(const Study& study, const std::string& judge,
              const std::function<void(const Shrunk&)>& progress, const std::atomic<bool>* stop) {
  const auto objects = [&](const Study& smaller) {
    const auto names = objectors(smaller, stop);
    return std::ranges::find(names, judge) != names.end();
  };
  Study quick = study;
  // Instants without end take as long as their limit.
  const bool is_slow = study.scenario(0, 0).events_per_instant > enough_for_an_instant;
  if (judge == time_judge && is_slow) {
    quick.settings.push_back({"run.events_per_instant", {std::to_string(enough_for_an_instant)}});
  }
  return shrink_while(quick, objects, progress);
}

}  // namespace sluice::sim::scenario
