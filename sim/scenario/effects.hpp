// What does nothing in a scenario, because another setting disables it. Threading: pure.
#pragma once

#include <string>
#include <string_view>

#include "sluice/sim/scenario.hpp"

namespace sluice::sim::scenario {

/// Whether limiter.hold has an effect on a limiter of this kind.
[[nodiscard]] bool is_prefetched(LimiterOptions::Kind kind) noexcept;

/// Whether each process has a limiter of its own, and among how many the limit is shared out.
[[nodiscard]] bool is_alone(const Scenario& scenario) noexcept;
[[nodiscard]] Word shares_of(const Scenario& scenario) noexcept;
/// Of a bucket, or the places of a concurrency limiter.
[[nodiscard]] Word burst_of(const LimiterOptions& limiter) noexcept;
/// Whether workers have clocks of their own, which are not those of the store.
[[nodiscard]] bool has_clocks(const Scenario& scenario) noexcept;

/// What a parameter needs to have an effect, as it is printed for people; "": nothing.
[[nodiscard]] std::string needs_of(std::string_view path);

/// Why a parameter changes nothing in this scenario, whatever its value, with the remedy; "": it
/// may change something. What a run may need and does not, such as retries where no call fails,
/// counts as an effect.
[[nodiscard]] std::string idle(const Scenario& scenario, std::string_view path);

/// The same of a fault, or of a value of it that its kind does not take.
[[nodiscard]] std::string idle(const Scenario& scenario, const FaultPlan& fault);

/// "20.000000 s".
[[nodiscard]] std::string seconds_text(Span span);
/// "the fault store_down at 20.000000 s".
[[nodiscard]] std::string name_for_people(const FaultPlan& fault);

/// Throws std::invalid_argument for what contradicts itself. validate() also refuses what is idle.
void validate_values(const Scenario& scenario);

/// Throws std::invalid_argument, with the remedy, if no judge could say whether the fleet recovers
/// within this time. Zero: nobody asks.
void validate_recovery(const Scenario& scenario, Span within);

}  // namespace sluice::sim::scenario
