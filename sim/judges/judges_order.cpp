// The judge of queues: first come, first served.
#include <algorithm>
#include <span>
#include <vector>

#include "sim/judges/judges.hpp"
#include "sluice/testing/invariants.hpp"

namespace sluice::sim::scenario {
namespace {

using Kind = LimiterOptions::Kind;
using Wait = testing::Wait;

/// Whether no request that is asked for beside others is refused: a limiter that reserves as far
/// ahead as anybody waits grants it for later, unless a failure policy refuses it in the place of
/// the store.
bool grants_in_turn(const Scenario& scenario) {
  const LimiterOptions& options = scenario.limiter;
  const bool reserves = options.kind == Kind::token_bucket ||
                        options.kind == Kind::sliding_window || options.kind == Kind::slot_lock;
  const Span longest =
      scenario.jobs.patience == Span{0} ? scenario.duration : scenario.jobs.patience;
  const bool alone = options.scope == LimiterOptions::Scope::per_process;
  const bool answers = alone || scenario.store.on_failure == StoreOptions::OnFailure::error;
  return reserves && options.horizon >= longest && answers;
}

/// A call under several limits moves from the queue of one to that of another. A waiter that is
/// refused is overtaken by those that ask beside it, which calls of a higher priority may cause
/// many times.
bool is_in_line(const Scenario& scenario) {
  const LimiterOptions& options = scenario.limiter;
  if (options.wait != LimiterOptions::Wait::queue || options.gates) return false;
  return grants_in_turn(scenario) || scenario.jobs.critical == 0;
}

/// How many later callers of its queue a waiter may see granted: as many as ask side by side.
std::size_t most_overtaking(const Scenario& scenario) { return grants_in_turn(scenario) ? 0 : 16; }

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
  const auto judge_between = [&](std::span<const Wait> all, Time from, Time to) {
    const auto waits = waits_between(all, from, to);
    // A call that the store has failed stands in line anew.
    const auto failed = [](const Wait& wait) { return wait.end == Wait::End::failed; };
    if (std::ranges::any_of(waits, failed)) return;
    if (const auto breach = testing::check_order(waits, most_overtaking(scenario), jitter)) {
      result.objections.push_back({order_judge, breach->what});
    }
  };
  const auto again = mended(scenario);
  for (const auto& [line, waits] : recorder.queues) {
    judge_between(waits, start, start + undisturbed(scenario));
    if (again && *again != Span{0}) judge_between(waits, start + *again, recorder.stopped);
  }
}

}  // namespace sluice::sim::scenario
