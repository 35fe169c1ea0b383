// What matchers count in a trace: the step that grants units, and histories for the checkers of
// invariants. Threading: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/testing/invariants.hpp"
#include "sluice/testing/trace.hpp"

namespace sluice::testing::detail {

/// The request of a call for a grant.
struct Asked {
  const TracedStep* step;  ///< the first granting step
  Word cost;
};

/// None for peeks, refunds and configuration: calls that never grant.
[[nodiscard]] std::optional<Asked> find_asked(const TracedCall& call);
[[nodiscard]] bool is_granted(const TracedCall& call);

/// The time since the start of the trace, "+2.5 s" in texts.
[[nodiscard]] inline Time since_start(Time at, const Trace& trace) {
  return Time{at - trace.start()};
}

/// The requests that were decided, by the time of their decisions.
[[nodiscard]] History requests_of(const Trace& trace);

/// The calls on one key.
struct KeyTrace {
  std::string key;
  Trace trace;
};

/// Every key of a trace with its calls and all marks, in the order of its first call.
[[nodiscard]] std::vector<KeyTrace> split_by_key(const Trace& trace);

/// The histories for checking hints: one for each repeated refused request on the key, in which
/// every other possible change of the key counts as allowed with no cost. Plans of several steps
/// are not checked, because other keys decide with them.
[[nodiscard]] std::map<std::string, History> hint_histories(const Trace& on_key,
                                                            const Trace& whole);

}  // namespace sluice::testing::detail
