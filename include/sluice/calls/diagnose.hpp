// diagnose(): who waits for a limiter, for how long, behind whom, and until when at the earliest.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "sluice/plan.hpp"
#include "sluice/time.hpp"

namespace sluice {

class Call;
class Waitable;

/// A call that waits for one limit. A call of several limits waits for one at a time; each
/// alternative of a FirstOf waits by itself.
struct WaitingCall {
  std::string limiter{};  ///< its name
  std::string key{};      ///< the tag of the key; of Gates, the scope
  Word cost = 1;          ///< of this limit
  int priority = 0;       ///< WaitOptions::priority
  std::string flow{};     ///< WaitOptions::flow
  Time at{};              ///< when diagnose() looked, by the clock of the store
  Span waited{0};         ///< until then, since acquire() or the Call began to wait
  /// How long it waits at least, to a microsecond, if nothing comes back early and no limit is
  /// raised. None: not known, as while the store is asked, for a place of a ConcurrencyLimiter,
  /// which may be released at any time, and behind calls that may not take what they wait for.
  std::optional<Span> at_least{};
  /// Calls of this process that are served before it, if nobody comes or leaves. Those of lower
  /// priorities count as behind it, although some have their share before it.
  std::size_t ahead = 0;
  /// Units that calls of other processes take before it at least, as the store said last.
  Word ahead_elsewhere = 0;
  bool is_asking = false;  ///< the store is asked for it now
};

/// The calls of this process that wait for a limiter of any kind, or of one of its copies: the keys
/// in order of the alphabet, those of one key in the order in which they are served. For logs and
/// pages of operators. No store is asked. `sluice show` tells which processes wait for a key of a
/// Redis store.
///
/// Thread-safe. For n waiting calls it takes O(n log n) under the mutex of all waits on the store.
/// Throws std::bad_alloc.
[[nodiscard]] std::vector<WaitingCall> diagnose(const Waitable& limiter);
/// The calls that wait for the keys that this call claims: those of this object and all others.
[[nodiscard]] std::vector<WaitingCall> diagnose(const Call& call);

/// "api of alice: waiting 2.5 s for 1 unit, behind 3 calls, at least 500 ms more". Names and keys
/// are escaped as by append_rendered(): one call is one line.
[[nodiscard]] std::string to_string(const WaitingCall& call);
std::ostream& operator<<(std::ostream& out, const WaitingCall& call);

}  // namespace sluice
