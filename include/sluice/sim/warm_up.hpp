// find_warm_up(): how long a scenario takes to forget its empty start. Threading: one thread.
#pragma once

#include "sluice/sim/rehearse.hpp"

namespace sluice::sim {

/// The warm-up of a scenario by mser5(), whatever its own is. Ten pilots run until the first fault
/// (or until ArrivalOptions::from of a spike, or the end), under the scenario's seed and nine that
/// follow from it. The series is the sum of their jobs without an answer, as means over each
/// thousandth of that time. So the result is a multiple of its 200th part, and at most its half.
/// `make`: the program's own client. Throws std::invalid_argument if the cut lies in the second
/// half, or as validate() does; Stopped if `stop` becomes true; std::runtime_error with the seed if
/// the time of a pilot stands still.
///
/// run() and rehearse() call it for a warm-up of `auto_warm_up`. For replications, call it once:
///
///     scenario.warm_up = sim::find_warm_up(scenario);
[[nodiscard]] Span find_warm_up(const Scenario& scenario, const MakeRehearsedClient& make = {},
                                const std::atomic<bool>* stop = nullptr);

}  // namespace sluice::sim
