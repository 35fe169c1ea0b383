// The judge of queues: first come, first served.
#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/judges/judges.hpp"
#include "sluice/testing/invariants.hpp"

namespace sluice::sim::scenario {
namespace {

using Wait = testing::Wait;

/// A call under several limits moves from the queue of one to that of another. A waiter that is
/// refused is overtaken by those that ask beside it, which calls of a higher priority may cause
/// many times.
bool is_in_line(const Scenario& scenario) {
  const LimiterOptions& options = scenario.limiter;
  return options.wait == LimiterOptions::Wait::queue && !options.gates &&
         scenario.jobs.critical == 0;
}

/// How many later callers of its queue a waiter may see granted: as many as ask side by side.
constexpr std::size_t most_overtaking = 16;
/// In the line of the fleet, each process may be granted so many before a caller that came earlier
/// elsewhere: those asked for before it was known there that others wait.
constexpr std::size_t most_ahead_of_fleet = 2;

/// Whether the processes stand in one line.
bool is_in_fleet_order(const Scenario& scenario) {
  const LimiterOptions& options = scenario.limiter;
  return options.fleet_order && options.hold == Span{0} &&
         options.scope == LimiterOptions::Scope::shared;
}

/// The waits of each line of the fleet, in the order of their arrival.
std::vector<std::vector<Wait>> fleet_lines(const Scenario& scenario, const Recorder& recorder) {
  std::map<std::uint32_t, std::vector<Wait>> lines;
  for (const auto& [queue, waits] : recorder.queues) {
    auto& line = lines[scenario.limiter.by_key ? std::get<1>(queue) : 0];
    line.insert(line.end(), waits.begin(), waits.end());
  }
  std::vector<std::vector<Wait>> sorted;
  for (auto& [key, line] : lines) {
    // Who comes at the same instant has no order.
    std::ranges::stable_sort(line, {}, [](const Wait& wait) {
      const bool is_over = wait.end != Wait::End::pending;
      return std::pair(wait.began, is_over ? wait.ended : Time::max());
    });
    sorted.push_back(std::move(line));
  }
  return sorted;
}

/// The waits that began in [from, to). Those that last longer are cancelled then: who is left
/// behind for ever has been overtaken all the same.
std::vector<Wait> waits_between(std::span<const Wait> waits, Time from, Time to) {
  std::vector<Wait> cut;
  for (Wait wait : waits) {
    if (wait.began < from || wait.began >= to) continue;
    if (wait.end == Wait::End::pending || wait.ended >= to) {
      wait.end = Wait::End::cancelled;
      wait.ended = to;
    }
    cut.push_back(wait);
  }
  return cut;
}

}  // namespace

void judge_order(const Scenario& scenario, const Recorder& recorder, RunResult& result) {
  if (recorder.queues.empty() || !is_in_line(scenario)) return;
  result.judges.emplace_back(order_judge);
  // A failure policy answers those whose requests failed before others who stand in line.
  if (recorder.counts.early_failures != 0) return;
  // By how much the answers to two calls differ in their delays.
  const Span jitter = scenario.store.from.max() - scenario.store.from.min();
  const Time start = recorder.stopped - scenario.duration;
  const auto judge_between = [&](std::span<const Wait> all, Time from, Time to, std::size_t most) {
    const auto waits = waits_between(all, from, to);
    // A call that the store has failed stands in line anew.
    const auto failed = [](const Wait& wait) { return wait.end == Wait::End::failed; };
    if (std::ranges::any_of(waits, failed)) return;
    if (const auto breach = testing::check_order(waits, most, jitter)) {
      result.objections.push_back({order_judge, breach->what});
    }
  };
  const auto again = mended(scenario);
  const auto judge_line = [&](std::span<const Wait> waits, std::size_t most) {
    judge_between(waits, start, start + undisturbed(scenario), most);
    if (again && *again != Span{0}) judge_between(waits, start + *again, recorder.stopped, most);
  };
  for (const auto& [queue, waits] : recorder.queues) judge_line(waits, most_overtaking);
  if (!is_in_fleet_order(scenario)) return;
  const std::size_t most = most_overtaking + most_ahead_of_fleet * scenario.fleet.workers;
  for (const auto& waits : fleet_lines(scenario, recorder)) judge_line(waits, most);
}

}  // namespace sluice::sim::scenario
