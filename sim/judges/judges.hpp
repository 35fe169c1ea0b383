// The judges of every run: the checkers of sluice/testing/invariants.hpp on what was recorded, and
// whether the fleet recovers. Threading: pure.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sim/judges/recorder.hpp"
#include "sluice/sim/run.hpp"
#include "sluice/sim/timeline.hpp"

namespace sluice::sim::scenario {

// The judges' names.
inline constexpr const char* bound_judge = "the limiter's bound";
inline constexpr const char* end_judge = "every wait ends once, in time";
inline constexpr const char* recovery_judge = "recovery";
inline constexpr const char* places_judge = "no more leases than places";
inline constexpr const char* vacancy_judge = "no place is left free while jobs wait";
inline constexpr const char* gates_judge = "nobody passes a closed gate";
inline constexpr const char* hints_judge = "hints are exact";
inline constexpr const char* local_judge = "grants without the store";
inline constexpr const char* idle_judge = "no unit is left unused while jobs wait";
inline constexpr const char* order_judge = "first come, first served";
inline constexpr const char* time_judge = "time goes on";
inline constexpr std::array<std::string_view, 11> judge_names{
    bound_judge, end_judge,   recovery_judge, places_judge, vacancy_judge, gates_judge,
    hints_judge, local_judge, idle_judge,     order_judge,  time_judge};

/// What a judge looks for, in a sentence; also of "sometimes" and "never", which a study adds. ""
/// for a name that no judge has.
[[nodiscard]] std::string_view judge_help(std::string_view name) noexcept;

/// True for faults of the store, the network and the workers.
[[nodiscard]] bool concerns_limiter(const FaultPlan& fault);

/// From the start until the first fault that concerns the limiter, if there is one.
[[nodiscard]] Span undisturbed(const Scenario& scenario);

/// From when on all faults that concern the limiter are mended, and queues move again; zero: there
/// is none; nothing: that does not come.
[[nodiscard]] std::optional<Span> mended(const Scenario& scenario);

/// What is said of a run that was ended because its time stood still, `at` since the start.
[[nodiscard]] Objection object_to_instant(const EndlessInstant& instant, Span at,
                                          const std::vector<JobEvent>& last);

/// Looks at the grants and the waits. `lost_writes`: that the store has forgotten. Sets the figures
/// bound_excess and bypassed.
void judge_safety(const Scenario& scenario, const Recorder& recorder, std::uint64_t lost_writes,
                  RunResult& result);

/// Looks at places, gates, hints, grants without the store, and whether units are left unused.
void judge_limiter(const Scenario& scenario, const Recorder& recorder, std::uint64_t lost_writes,
                   RunResult& result);

/// Looks whether callers of one queue are served in their order.
void judge_order(const Scenario& scenario, const Recorder& recorder, RunResult& result);

/// Looks whether the goodput is back, and the backlog gone unless one grew before the first fault,
/// `within` after the last fault; zero: is not asked. Sets the figure recovery: infinity if both
/// did not come within the run. REQUIRES: the series is in the result; validate_recovery() accepts
/// it.
void judge_recovery(const Scenario& scenario, Span within, RunResult& result);

/// How long the run goes on behind its last fault.
[[nodiscard]] Span time_after_faults(const Scenario& scenario);

}  // namespace sluice::sim::scenario
