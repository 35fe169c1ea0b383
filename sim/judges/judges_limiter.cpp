// The judges of what a limiter promises besides its bound.
#include <algorithm>

#include "sim/judges/judges.hpp"
#include "sim/scenario/effects.hpp"
#include "sluice/testing/invariants.hpp"
#include "sluice/testing/text.hpp"

namespace sluice::sim::scenario {
namespace {

using Kind = LimiterOptions::Kind;
using Fault = FaultPlan::Kind;
using End = testing::Wait::End;

// Trips to the store: so many seconds' units, and one in ten of all, may be granted later.
constexpr Word idle_seconds = 2;
// A release that tells nobody is noticed by the next recheck of a queue.
constexpr Span longest_vacancy = std::chrono::seconds{5};

class LimiterJudge {
 public:
  LimiterJudge(const Scenario& scenario, const Recorder& recorder, std::uint64_t lost_writes,
               RunResult& result)
      : scenario_(scenario),
        options_(scenario.limiter),
        alone_(is_alone(scenario)),
        burst_(burst_of(scenario.limiter)),
        recorder_(recorder),
        forgets_(lost_writes != 0),
        disturbed_(std::ranges::any_of(scenario.faults, concerns_limiter)),
        result_(result) {}

  void judge() {
    if (recorder_.truncated) return;
    const bool on_time = !has_clocks(scenario_);
    if (!recorder_.leases.empty() && !forgets_) {
      judge_places();
      const bool in_line = options_.wait == LimiterOptions::Wait::queue && !options_.gates;
      if (on_time && in_line) judge_vacancies();
    }
    if (!recorder_.closures.empty() && !forgets_) judge_gates();
    if (!recorder_.polls.empty() && has_hints() && (alone_ || !disturbed_)) judge_hints();
    if (is_remote()) judge_local();
    if (on_time && is_worked_off()) judge_idle();
  }

 private:
  [[nodiscard]] bool is_remote() const { return !alone_ && options_.kind != Kind::none; }
  [[nodiscard]] Word places() const { return std::max<Word>(burst_ / shares_of(scenario_), 1); }

  void object(const char* judge, const testing::Checked& breach) {
    if (breach) result_.objections.push_back({judge, breach->what});
  }

  void judge_places() {
    result_.judges.emplace_back(places_judge);
    for (const auto& [index, leases] : recorder_.leases) {
      // At one instant: in the order of the grants, each with its release behind it.
      auto sorted = leases;
      std::ranges::stable_sort(sorted, {}, [](const testing::LeaseRecord& event) {
        return std::pair(event.at, event.fence);
      });
      object(places_judge, testing::check_leases(sorted, places()));
    }
  }

  /// Before the first fault, after which places may be held of which nobody knows.
  void judge_vacancies() {
    if (scenario_.jobs.critical != 0 || alone_) return;
    result_.judges.emplace_back(vacancy_judge);
    const Time calm = start() + undisturbed(scenario_);
    const auto lines = waits_between(Time{}, calm);
    for (const auto& [index, leases] : recorder_.leases) {
      const auto found = lines.find(index);
      if (found == lines.end()) continue;
      auto sorted = leases;
      std::erase_if(sorted, [calm](const testing::LeaseRecord& event) { return event.at >= calm; });
      std::ranges::stable_sort(sorted, {}, &testing::LeaseRecord::at);
      object(vacancy_judge,
             testing::check_places(found->second, sorted, places(), longest_vacancy));
    }
  }

  /// What is decided after a closure takes effect after its end.
  void judge_gates() {
    result_.judges.emplace_back(gates_judge);
    auto closures = recorder_.closures;
    std::ranges::sort(closures, {}, &Recorder::Closure::at);
    for (const auto& [index, grants] : recorder_.grants) {
      auto decided = grants;
      std::ranges::stable_sort(decided, {}, &testing::Event::at);
      auto next = closures.begin();
      Time closed_until{};
      for (const testing::Event& grant : decided) {
        for (; next != closures.end() && next->at < grant.at; ++next) {
          closed_until = std::max(closed_until, next->until);
        }
        if (grant.effective >= closed_until) continue;
        result_.objections.push_back(
            {gates_judge, "a call was let through at " + testing::to_text(grant.effective) +
                              ", the gate was closed until " + testing::to_text(closed_until)});
        break;
      }
    }
  }

  [[nodiscard]] bool has_hints() const {
    return options_.wait != LimiterOptions::Wait::queue && options_.hold == Span{0} &&
           recorder_.counts.store_failures == 0 &&
           (options_.kind == Kind::token_bucket || options_.kind == Kind::sliding_window ||
            options_.kind == Kind::fixed_window || options_.kind == Kind::sliding_window_counter);
  }

  void judge_hints() {
    result_.judges.emplace_back(hints_judge);
    // Answers that were still on their way at the end are not known.
    const Time known = recorder_.stopped - scenario_.store.timeout;
    for (const auto& [index, polls] : recorder_.polls) {
      testing::History decided;
      std::ranges::copy_if(polls, std::back_inserter(decided),
                           [&](const testing::Event& poll) { return poll.at < known; });
      std::ranges::stable_sort(decided, {}, &testing::Event::at);
      const auto same = std::ranges::adjacent_find(decided, {}, &testing::Event::at);
      // The store decides several plans of one instant in an order that their answers do not tell.
      if (!alone_ && same != decided.end()) continue;
      object(hints_judge, testing::check_hints(decided));
    }
  }

  /// A process without the store grants its share of the limit, or nothing at all.
  void judge_local() {
    using Policy = StoreOptions::OnFailure;
    const Policy policy = scenario_.store.on_failure;
    if (policy == Policy::open) return;
    result_.judges.emplace_back(local_judge);
    if (policy != Policy::local && recorder_.counts.without_store != 0) {
      result_.objections.push_back(
          {local_judge, std::to_string(recorder_.counts.without_store) +
                            " calls were let through without the store, and none may be"});
    }
    const auto workers = static_cast<Word>(scenario_.fleet.workers);
    const auto& [events, per] = options_.limit;
    // What a process has prefetched completes a grant without the store.
    const Word held = options_.hold == Span{0} ? 0 : options_.most;
    for (const auto& [index, grants] : recorder_.local_grants) {
      auto sorted = grants;
      std::ranges::stable_sort(sorted, {}, &testing::Event::effective);
      if (options_.kind == Kind::token_bucket) {
        // A reservation is rounded up to a microsecond.
        const Word rounding = events / (per.count() * workers) + 1;
        const Word most = burst_ / workers + rounding + held;
        object(local_judge, testing::check_rate(sorted, {most, events, per * workers}));
      } else if (options_.kind == Kind::sliding_window) {
        object(local_judge, testing::check_window(sorted, per, events / workers + held));
      } else if (options_.kind == Kind::fixed_window ||
                 options_.kind == Kind::sliding_window_counter) {
        object(local_judge, testing::check_window(sorted, per, 2 * (events / workers) + held));
      }
    }
  }

  /// A bucket of the fleet that is waited for in line: nothing but trips to the store delays a
  /// grant.
  [[nodiscard]] bool is_worked_off() const {
    return options_.kind == Kind::token_bucket && options_.wait == LimiterOptions::Wait::queue &&
           options_.hold == Span{0} && !options_.gates && !alone_;
  }

  [[nodiscard]] Time start() const { return recorder_.stopped - scenario_.duration; }

  /// The waits in [from, to) of what is limited apart, in the order of their beginnings. What goes
  /// on then is cancelled.
  [[nodiscard]] std::map<std::uint64_t, std::vector<testing::Wait>> waits_between(Time from,
                                                                                  Time to) const {
    std::map<std::uint64_t, std::vector<testing::Wait>> lines;
    for (const auto& [line, waits] : recorder_.queues) {
      const auto& [worker, key, critical] = line;
      auto& all = lines[options_.by_key ? std::uint64_t{key} << 32 : 0];
      for (testing::Wait wait : waits) {
        wait.priority = 0;
        if (wait.end == End::pending || wait.ended >= to) {
          wait.end = End::cancelled;
          wait.ended = to;
        }
        if (wait.began < to && wait.ended > from) all.push_back(wait);
      }
    }
    for (auto& [index, waits] : lines) {
      std::ranges::stable_sort(waits, {}, &testing::Wait::began);
    }
    return lines;
  }

  /// While nothing disturbs it, and when it is left alone again.
  void judge_idle() {
    result_.judges.emplace_back(idle_judge);
    judge_idle_between(start(), start() + undisturbed(scenario_), 0);
    const auto again = mended(scenario_);
    if (!again || *again == Span{0}) return;
    const Counts& counts = recorder_.counts;
    judge_idle_between(start() + *again, recorder_.stopped,
                       static_cast<Word>(counts.store_failures + counts.stranded));
  }

  /// `lost`: grants that were decided, and whose answers did not arrive, or found a dead worker.
  void judge_idle_between(Time from, Time to, Word lost) {
    const auto& [events, per] = options_.limit;
    const Word rate = events * 1'000'000 / per.count() + 1;  // a second
    const Word spare = (lost + scenario_.fleet.workers) * highest_cost(scenario_);
    const testing::RateBound bound{burst_ + idle_seconds * rate + spare, events * 9, per * 10};
    for (const auto& [index, waits] : waits_between(from, to)) {
      const bool failed = std::ranges::any_of(
          waits, [](const testing::Wait& wait) { return wait.end == End::failed; });
      if (failed && lost == 0) continue;  // a store that cannot keep up
      object(idle_judge, testing::check_recovery(waits, from, Span{0}, bound));
    }
  }

  const Scenario& scenario_;
  const LimiterOptions& options_;
  bool alone_;
  Word burst_;
  const Recorder& recorder_;
  bool forgets_;
  bool disturbed_;
  RunResult& result_;
};

}  // namespace

void judge_limiter(const Scenario& scenario, const Recorder& recorder, std::uint64_t lost_writes,
                   RunResult& result) {
  LimiterJudge(scenario, recorder, lost_writes, result).judge();
}

}  // namespace sluice::sim::scenario
