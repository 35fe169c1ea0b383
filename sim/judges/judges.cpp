#include "sim/judges/judges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>

#include "sim/scenario/effects.hpp"
#include "sim/scenario/parameters.hpp"
#include "sluice/testing/invariants.hpp"
#include "sluice/testing/text.hpp"

namespace sluice::sim::scenario {
namespace {

using Kind = LimiterOptions::Kind;

// What a queue needs to move again after a fault: the pauses of breakers, and a reservation.
constexpr Span time_to_settle = std::chrono::seconds{15};

/// Units that may be granted beyond the bound, because the store forgot that they were: at most
/// one grant for each lost write.
Word forgiven(const Scenario& scenario, std::uint64_t lost_writes) {
  return static_cast<Word>(lost_writes) * highest_cost(scenario);
}

struct Excess {
  Word units = 0;
  std::string what;
};

/// The most by which the grants of any interval exceed burst + rate * t. Times are whole
/// microseconds, rounded up, so that an interval may be one longer than it seems. All numbers are
/// multiplied by the period, so that they are exact.
Excess rate_excess(const testing::History& grants, const testing::RateBound& bound) {
  __extension__ using Exact = __int128;
  const Word period = bound.period.count();
  Exact level = 0;
  Exact most = 0;
  Time last{};
  Excess result;
  for (const testing::Event& grant : grants) {
    const Word flow_us = std::min((grant.effective - last).count() + 1, word_limit);
    level = std::max<Exact>(level - Exact{bound.units} * flow_us, 0) + Exact{grant.cost} * period;
    last = grant.effective;
    const Exact over = level - Exact{bound.burst} * period;
    if (over <= most) continue;
    most = over;
    result.units = static_cast<Word>((over + period - 1) / period);
    result.what = "until " + testing::to_text(grant.effective) + " " +
                  std::to_string(result.units) + " units more were granted than burst + rate * t";
  }
  return result;
}

Excess excess_of(const testing::Checked& breach) {
  return breach ? Excess{breach->excess, breach->what} : Excess{};
}

/// The most by which the grants of any window of the clock exceed the limit.
Excess aligned_excess(const testing::History& grants, Span per, Word limit) {
  std::vector<Time> edges;
  for (const testing::Event& grant : grants) {
    const Time edge{grant.effective.time_since_epoch() / per * per};
    if (edges.empty() || edges.back() != edge) edges.push_back(edge);
  }
  if (!edges.empty()) edges.push_back(edges.back() + per);
  return excess_of(testing::check_aligned(grants, edges, limit));
}

/// By how much the grants exceed what the limiter promises.
Excess find_excess(const Scenario& scenario, const testing::History& grants) {
  const LimiterOptions& options = scenario.limiter;
  const Word share = shares_of(scenario);
  const auto& [events, per] = options.limit;
  const Word window = std::max<Word>(events / share, 1);
  switch (options.kind) {
    case Kind::token_bucket: {
      const Word burst = std::max<Word>(burst_of(options) / share, 1);
      // Prefetched units are spent up to `hold` later.
      const Word held =
          options.hold == Span{0} ? 0 : events * options.hold.count() / (per.count() * share) + 1;
      return rate_excess(grants, {burst + held, events, per * share});
    }
    case Kind::sliding_window:
      return excess_of(testing::check_window(grants, per, window));
    case Kind::fixed_window: {
      const Excess spread = excess_of(testing::check_window(grants, per, 2 * window));
      return spread.units != 0 || options.hold != Span{0} ? spread
                                                          : aligned_excess(grants, per, window);
    }
    case Kind::sliding_window_counter:
      return excess_of(testing::check_window(grants, per, 2 * window));
    case Kind::slot_lock:
      return rate_excess(grants, {1, 1, per * share / events});
    default:
      return {};
  }
}

double sum(std::span<const std::uint32_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), 0.0);
}

/// Whether a count is at least 99 % of what is expected, but for the noise of a Poisson process.
bool is_enough(double count, double expected) {
  return count >= 0.99 * expected - 3 * std::sqrt(expected);
}

/// The time of the faults, in steps of the series.
struct Steps {
  Steps(const Scenario& scenario, Span its_step)
      : step(its_step),
        count(static_cast<std::size_t>((scenario.duration + step - Span{1}) / step)) {
    const auto by_end = [](const FaultPlan& a, const FaultPlan& b) { return a.end() < b.end(); };
    last = std::ranges::max_element(scenario.faults, by_end)->end();
    const Span warm_up = std::max(scenario.warm_up, Span{0});  // automatic ones are not known yet
    begin = of(warm_up + step - Span{1});
    faulty = of(std::ranges::min_element(scenario.faults, {}, &FaultPlan::at)->at);
    if (has_before()) window = std::clamp<std::size_t>((faulty - begin) / 2, 1, 8);
  }
  [[nodiscard]] std::size_t of(Span at) const { return static_cast<std::size_t>(at / step); }
  /// Whether there is time before the first fault to compare with.
  [[nodiscard]] bool has_before() const { return faulty > begin; }
  /// Whether the run shows any recovery that comes `within` so long after the last fault.
  [[nodiscard]] bool shows(Span within) const { return of(last + within) + window <= count; }

  Span step;
  std::size_t count;
  Span last{0};            // the end of the last fault
  std::size_t begin = 0;   // of what counts
  std::size_t faulty = 0;  // the first fault
  std::size_t window = 1;
};

/// Whether more jobs come than are done before the first fault already, by more than the noise of a
/// Poisson process: their backlog grows without any fault, and none of them could take it away.
bool falls_behind(const Series& series, const Steps& steps) {
  const std::size_t from = steps.begin + 1;  // at the end of the first step, calls are under way
  if (from >= steps.faulty) return false;
  const double offered = sum(std::span(series.offered).subspan(from, steps.faulty - from));
  const double grown = static_cast<double>(series.unfinished[steps.faulty - 1]) -
                       static_cast<double>(series.unfinished[steps.begin]);
  return grown > 3 * std::sqrt(offered);
}

/// The most jobs that may be unfinished once the backlog is gone: as many as at any time before the
/// first fault, but for the noise of a Poisson process.
double most_unfinished_of(const Series& series, const Steps& steps) {
  const auto before = std::span(series.unfinished).subspan(steps.begin, steps.faulty - steps.begin);
  const double most = *std::ranges::max_element(before);
  return most + 3 * std::sqrt(most);
}

/// The first step from the last fault on in which the goodput is back to stay, and the backlog
/// gone: a window has the goodput of before, and the rest of the run has it as well, or what is
/// offered there. Without the rest, a burst between two collapses would be a recovery.
std::optional<std::size_t> comes_back(const Series& series, const Steps& steps, double most) {
  const std::span<const std::uint32_t> ok = series.ok;
  const std::span<const std::uint32_t> offered = series.offered;
  const double before = sum(ok.subspan(steps.begin, steps.faulty - steps.begin)) /
                        static_cast<double>(steps.faulty - steps.begin);
  for (std::size_t i = steps.of(steps.last); i + steps.window <= ok.size(); ++i) {
    const double expected =
        std::min(before * static_cast<double>(ok.size() - i), sum(offered.subspan(i)));
    if (series.unfinished[i] <= most &&
        is_enough(sum(ok.subspan(i, steps.window)), before * static_cast<double>(steps.window)) &&
        is_enough(sum(ok.subspan(i)), expected)) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

bool concerns_limiter(const FaultPlan& fault) {
  return !info_of(fault.kind).name.starts_with("upstream_");
}

Span undisturbed(const Scenario& scenario) {
  Span until = scenario.duration;
  for (const FaultPlan& fault : scenario.faults) {
    if (concerns_limiter(fault)) until = std::min(until, fault.at);
  }
  return until;
}

std::optional<Span> mended(const Scenario& scenario) {
  Span last{0};
  for (const FaultPlan& fault : scenario.faults) {
    if (!concerns_limiter(fault)) continue;
    const bool ends = fault.kind == FaultPlan::Kind::worker_crash || fault.length != Span{0};
    if (fault.kind == FaultPlan::Kind::clock_step || !ends) return {};
    last = std::max(last, fault.end() + time_to_settle);
  }
  if (last >= scenario.duration) return {};
  return last;
}

Objection object_to_instant(const EndlessInstant& instant, Span at,
                            const std::vector<JobEvent>& last) {
  std::string text = "the time stands still at " + seconds_text(at) + ": " +
                     std::to_string(instant.events()) + " events have run there; ";
  text += last.empty() ? "none was of a job" : "the last of jobs: ";
  for (const JobEvent& event : last) {
    text += (&event == &last.front() ? "job " : ", job ") + std::to_string(event.job) +
            " of worker " + std::to_string(event.worker) + " " + std::string(name_of(event.what));
    if (event.what == JobEvent::What::answered) text += " " + std::to_string(event.status);
  }
  return {time_judge, text};
}

void judge_safety(const Scenario& scenario, const Recorder& recorder, std::uint64_t lost_writes,
                  RunResult& result) {
  Word excess = 0;
  if (!recorder.grants.empty() && scenario.clock.offset == Span{0}) {
    result.judges.emplace_back(bound_judge);
    const Word most = forgiven(scenario, lost_writes);
    for (const auto& [index, grants] : recorder.grants) {
      const Excess found = find_excess(scenario, grants);
      excess = std::max(excess, found.units);
      if (found.units > most) {
        result.objections.push_back({bound_judge, found.what});
      }
    }
  }
  result.figures[Metric::bound_excess] = static_cast<double>(excess);

  const Span slack = has_clocks(scenario) ? Span::max() : scenario.store.timeout * 2;
  // By how much the answers to two calls differ in their delays.
  const Span jitter = scenario.store.from.max() - scenario.store.from.min();
  Word bypassed = 0;
  for (const auto& [line, waits] : recorder.queues) {
    std::vector<testing::Wait> ended;
    std::ranges::copy_if(waits, std::back_inserter(ended), [&](const testing::Wait& wait) {
      const bool overdue = wait.deadline != Time::max() && recorder.stopped - wait.deadline > slack;
      return wait.end != testing::Wait::End::pending || overdue;
    });
    if (const auto breach = testing::check_waits_end(ended, slack)) {
      result.objections.push_back({end_judge, breach->what});
    }
    if (const auto breach = testing::check_order(ended, 0, jitter)) {
      bypassed = std::max(bypassed, std::max<Word>(breach->excess, 1));
    }
  }
  if (!recorder.queues.empty()) result.judges.emplace_back(end_judge);
  result.figures[Metric::bypassed] = static_cast<double>(bypassed);
}

void judge_recovery(const Scenario& scenario, Span within, RunResult& result) {
  if (scenario.faults.empty()) return;
  const Steps steps(scenario, result.series.step);
  if (!steps.has_before()) return;
  const Series& series = result.series;
  const auto took = [&](double most) {
    const auto back = comes_back(series, steps, most);
    return back ? std::max(series.step * static_cast<Word>(*back) - steps.last, Span{0})
                : Span::max();
  };
  const auto seconds = [](Span span) { return static_cast<double>(span.count()) / 1'000'000; };
  const auto whole = [](double number) { return std::to_string(std::llround(number)); };
  const double most = most_unfinished_of(series, steps);
  const Span recovery = took(most);
  result.figures[Metric::recovery] =
      recovery == Span::max() ? std::numeric_limits<double>::infinity() : seconds(recovery);
  if (within == Span{0}) return;
  result.judges.emplace_back(recovery_judge);
  const bool goodput_alone = falls_behind(series, steps);
  const Span judged = goodput_alone ? took(std::numeric_limits<double>::infinity()) : recovery;
  if (judged <= within) return;
  std::string text;
  if (judged != Span::max()) {
    text = std::string("the goodput is back, ") + (goodput_alone ? "" : "and the backlog gone, ") +
           whole(seconds(judged)) + " s after the last fault";
  } else {
    text = "the fleet does not recover until the end: " + whole(series.unfinished.back()) +
           " jobs are unfinished there, and " +
           (goodput_alone ? "the goodput of before does not come back"
                          : "at most " + whole(most) + " would be by chance");
  }
  result.objections.push_back({recovery_judge, text});
}

Span time_after_faults(const Scenario& scenario) {
  Span last{0};
  for (const FaultPlan& fault : scenario.faults) last = std::max(last, fault.end());
  return std::max(scenario.duration - last, Span{0});
}

void validate_recovery(const Scenario& scenario, Span within) {
  if (within == Span{0}) return;
  const auto seconds = [](Span span) {
    return std::to_string((span.count() + 999'999) / 1'000'000) + " s";
  };
  if (scenario.faults.empty()) {
    throw std::invalid_argument(
        "a recovery judge does nothing without a fault: add one, or leave judges.recovery out");
  }
  const auto steps_of = [](const Scenario& s) { return Steps(s, series_step(s.duration)); };
  const Steps steps = steps_of(scenario);
  if (!steps.has_before()) {
    throw std::invalid_argument(
        "a recovery judge compares with the time before the first fault, and there is none: let "
        "the first fault begin at " +
        seconds(steps.step * static_cast<Word>(steps.begin + 1)) +
        " or later, or shorten "
        "run.warm_up");
  }
  if (steps.shows(within)) return;
  Scenario longer = scenario;
  longer.duration = std::max(longer.duration, steps.last + within);
  while (!steps_of(longer).shows(within)) longer.duration += series_step(longer.duration);
  throw std::invalid_argument("judges.recovery of " + seconds(within) +
                              " cannot be judged, because the last fault ends at " +
                              seconds(steps.last) + ": run.duration must be " +
                              seconds(longer.duration) + " or longer, got " +
                              seconds(scenario.duration));
}

}  // namespace sluice::sim::scenario
