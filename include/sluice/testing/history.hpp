// What callers of a limiter saw, in the order in which the store decided: the input of the
// checkers in sluice/testing/invariants.hpp. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/decision.hpp"

namespace sluice::testing {

/// One request and its answer.
struct Event {
  Time at{};             ///< when it was decided, by the store's clock
  Word cost = 1;         ///< units asked for
  bool allowed = false;  ///< whatever else changes the key (a release, a refund) counts as allowed
  Time effective{};      ///< when a grant counts: `at`, or later if it was reserved
  Span retry_after{0};   ///< what a refusal advised
  Word remaining = 0;    ///< what the answer said is left
  std::size_t caller = 0;
};

/// In the order of the decisions.
using History = std::vector<Event>;

/// A decision as an event.
[[nodiscard]] inline Event note(const Decision& d, Word cost = 1, std::size_t caller = 0) {
  const Span ahead = d.allowed ? d.retry_after : Span{0};
  return {d.at, cost, d.allowed, d.at + ahead, d.retry_after, d.remaining, caller};
}

/// What happened to one lease.
struct LeaseEvent {
  enum class Act : std::uint8_t { acquired, renewed, released };
  Time at{};
  Act act = Act::acquired;
  std::uint64_t lease = 0;  ///< any number that tells the leases apart
  Word weight = 1;          ///< of acquired
  Time until{};             ///< when it ends by itself; of acquired and renewed
  Word fence = 0;           ///< of acquired
  /// Of acquired: what all leases together may weigh for this one to be granted.
  Word share = word_limit;
};

/// A request with what a question beside it saw: before and after, at the same instant.
struct Looked {
  Decision before;
  Decision answer;
  Decision after;
};

/// A question and its answer, each with a number that only belongs to this request: a nonce, or a
/// limit that no other request has.
struct Matched {
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
};

/// One call that waited in a line. Note them in the order of their arrival.
struct Wait {
  enum class End : std::uint8_t { pending, granted, refused, cancelled, failed };
  Time began{};
  Time ended{};
  End end = End::pending;
  int completions = 0;  ///< how often it was told its end
  Time deadline = Time::max();
  Word cost = 1;
  int priority = 0;
};

/// How an invariant was broken.
struct Breach {
  std::string what;  ///< a sentence with the instants and the numbers
  Word excess = 0;   ///< units, or microseconds for gaps, beyond what is allowed
};

/// Nothing, if the history keeps the invariant.
using Checked = std::optional<Breach>;

}  // namespace sluice::testing
