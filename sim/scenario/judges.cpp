#include "sim/scenario/judges.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "sluice/testing/invariants.hpp"

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

bool are_clocks_true(const Scenario& scenario) {
  return scenario.clock.offset == Span{0} && scenario.clock.drift == 0;
}

struct Excess {
  Word units = 0;
  std::string what;
};

/// The most by which the grants of any interval exceed burst + rate * t. Times are whole
/// microseconds, rounded up, so that an interval may be one longer than it seems. All numbers are
/// multiplied by the period, so that they are exact.
Excess rate_excess(const testing::History& grants, const testing::RateBound& bound) {
  using testing::detail::Exact;
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
  const bool alone = options.scope == LimiterOptions::Scope::per_process;
  const Word share = alone ? scenario.fleet.workers : 1;
  const auto& [events, per] = options.limit;
  const Word window = std::max<Word>(events / share, 1);
  switch (options.kind) {
    case Kind::token_bucket: {
      const Word burst = std::max<Word>((options.burst != 0 ? options.burst : events) / share, 1);
      // Leased units are spent up to `hold` later.
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

/// The first step from `from` on in which the goodput is back to stay: a window of so many steps
/// has that of before, and the rest of the run has it as well, or what is offered there. Without
/// the rest, a burst between two collapses would be a recovery.
std::optional<std::size_t> comes_back(const Series& series, std::size_t from, std::size_t steps,
                                      double before) {
  const std::span<const std::uint32_t> ok = series.ok;
  const std::span<const std::uint32_t> offered = series.offered;
  for (std::size_t i = from; i + steps <= ok.size(); ++i) {
    const double expected =
        std::min(before * static_cast<double>(ok.size() - i), sum(offered.subspan(i)));
    if (is_enough(sum(ok.subspan(i, steps)), before * static_cast<double>(steps)) &&
        is_enough(sum(ok.subspan(i)), expected)) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

bool concerns_limiter(const FaultPlan& fault) {
  using Fault = FaultPlan::Kind;
  switch (fault.kind) {
    case Fault::upstream_down:
    case Fault::upstream_slow:
    case Fault::upstream_servers:
    case Fault::upstream_limit:
    case Fault::upstream_second:
    case Fault::upstream_cut:
    case Fault::upstream_loss:
    case Fault::upstream_answers_lost:
    case Fault::upstream_doubled:
      return false;
    default:
      return true;
  }
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
  std::string text = "the time stands still at " +
                     std::to_string(static_cast<double>(at.count()) / 1'000'000) +
                     " s: " + std::to_string(instant.events()) + " events have run there; ";
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

  const Span slack = are_clocks_true(scenario) ? scenario.store.timeout * 2 : Span::max();
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
  const auto by_at = [](const FaultPlan& a, const FaultPlan& b) { return a.at < b.at; };
  const auto by_end = [](const FaultPlan& a, const FaultPlan& b) { return a.end() < b.end(); };
  const Span first = std::ranges::min_element(scenario.faults, by_at)->at;
  const Span last = std::ranges::max_element(scenario.faults, by_end)->end();
  const Series& series = result.series;
  const auto step_of = [&](Span at) { return static_cast<std::size_t>(at / series.step); };
  const std::size_t begin = step_of(scenario.warm_up + series.step - Span{1});
  const std::size_t faulty = step_of(first);
  if (faulty <= begin || step_of(last) >= series.ok.size()) return;

  const std::size_t steps = std::clamp<std::size_t>((faulty - begin) / 2, 1, 8);
  const double before = sum(std::span(series.ok).subspan(begin, faulty - begin)) /
                        static_cast<double>(faulty - begin);
  const auto back = comes_back(series, step_of(last), steps, before);
  Span took = scenario.duration - last;
  if (back) took = std::max(series.step * static_cast<Word>(*back) - last, Span{0});
  result.figures[Metric::recovery] = static_cast<double>(took.count()) / 1'000'000;
  if (within == Span{0}) return;
  result.judges.emplace_back(recovery_judge);
  if (back && took <= within) return;
  result.objections.push_back(
      {recovery_judge, back ? "the goodput is back " + std::to_string(took / Span{1'000'000}) +
                                  " s after the last fault"
                            : std::string("the goodput does not come back until the end")});
}

}  // namespace sluice::sim::scenario
