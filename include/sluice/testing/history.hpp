// Histories: the requests and answers of a limiter's callers, in the order of the store's
// decisions; the input of the checkers in sluice/testing/invariants.hpp. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/decision.hpp"

namespace sluice::testing {

/// One request and its answer.
struct Event {
  Time at{};             ///< the time of the decision, by the store's clock
  Word cost = 1;         ///< units requested
  bool allowed = false;  ///< other changes of the key (a release, a refund) count as allowed
  Time effective{};      ///< the time of a grant: `at`, or later for a reservation
  Span retry_after{0};   ///< the hint of a refusal
  Word remaining = 0;    ///< as in the answer
  std::size_t caller = 0;
};

/// In the order of the decisions.
using History = std::vector<Event>;

/// Makes an event of a decision.
[[nodiscard]] inline Event note(const Decision& d, Word cost = 1, std::size_t caller = 0) {
  const Span ahead = d.allowed ? d.retry_after : Span{0};
  return {d.at, cost, d.allowed, d.at + ahead, d.retry_after, d.remaining, caller};
}

/// An event of one lease.
struct LeaseEvent {
  enum class Act : std::uint8_t { acquired, renewed, released };
  Time at{};
  Act act = Act::acquired;
  std::uint64_t lease = 0;  ///< any number that identifies the lease
  Word weight = 1;          ///< for acquired
  Time until{};             ///< the expiry; for acquired and renewed
  Word fence = 0;           ///< for acquired
  /// For acquired: the most that all leases together may weigh for this grant.
  Word share = word_limit;
};

/// A request, and peeks before and after it at the same instant.
struct Looked {
  Decision before;
  Decision answer;
  Decision after;
};

/// A request and its answer, each with a number that is unique to the request: a nonce, or a limit
/// that no other request has.
struct Matched {
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
};

/// One waiting call. Record them in the order of their arrival.
struct Wait {
  enum class End : std::uint8_t { pending, granted, refused, cancelled, failed };
  Time began{};
  Time ended{};
  End end = End::pending;
  int completions = 0;  ///< how often it completed
  Time deadline = Time::max();
  Word cost = 1;
  int priority = 0;
};

/// A violation of an invariant.
struct Breach {
  std::string what;  ///< a sentence with the times and the numbers
  Word excess = 0;   ///< units (for gaps: microseconds) beyond the bound
};

/// The result of a checker: empty if the history satisfies the invariant.
using Checked = std::optional<Breach>;

}  // namespace sluice::testing
