// Histories (the requests and answers of a limiter's callers, in the order of the store's
// decisions), and the invariants that every history satisfies. The checkers are pure functions,
// which share no code with the rules: they check sums and times only.
//
//     History history;  // push_back(note(bucket.try_acquire("a", 2), 2))...
//     const Checked checked = check_rate(history, {.burst = 5, .units = 10, .period = 1s});
//     if (checked) std::cerr << checked->what;      // names the interval and the excess
//
// Safety: check_rate (any interval), check_window and check_aligned (any window), check_leases,
// check_gaps, check_refusals, check_answers, check_remaining; with changing quotas:
// check_changing_rate, check_changing_window. Liveness: check_hints, check_work_conserving; for
// waiting calls: check_waits_end, check_places, check_order, check_waits_served, check_recovery.
// Comparing two histories: check_same_grants. Threading: pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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
[[nodiscard]] Event note(const Decision& d, Word cost = 1, std::size_t caller = 0);

/// An event of one lease.
struct LeaseRecord {
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
  int flow = 0;
};

/// A violation of an invariant.
struct Breach {
  std::string what;  ///< a sentence with the times and the numbers
  Word excess = 0;   ///< units (for gaps: microseconds) beyond the bound
};

/// The result of a checker: empty if the history satisfies the invariant.
using Checked = std::optional<Breach>;

/// At most `burst` units at once, and `units` more in each `period`.
struct RateBound {
  Word burst = 0;
  Word units = 0;
  Span period{1};
};

/// A quota and the time from which it is in force, until the next one, at whose time both count.
struct RateFrom {
  Time from{};
  RateBound bound;
};
/// The same for a limit on any window of `length`.
struct WindowFrom {
  Time from{};
  Span length{1};
  Word limit = 0;
};

/// In every interval of t microseconds at most burst + units * t / period units take effect.
/// O(n) if the grants take effect in the order of the history, else O(n log n).
[[nodiscard]] Checked check_rate(std::span<const Event> history, const RateBound& bound);

/// In every half-open window of `length`, (t - length, t], at most `limit` units take effect.
/// O(n), or as check_rate().
[[nodiscard]] Checked check_window(std::span<const Event> history, Span length, Word limit);

/// In every interval, at most what the largest burst and the largest rate in force in it admit.
/// REQUIRES, here and below: ascending times, the first before all grants. O(n c^2) with c quotas.
[[nodiscard]] Checked check_changing_rate(std::span<const Event> history,
                                          std::span<const RateFrom> quotas);

/// In every interval as long as the window of a quota in force in it, at most the largest of what
/// these quotas admit in that time: the limit, once for each of the quota's own windows begun, and
/// once more if it changed more than once.
[[nodiscard]] Checked check_changing_window(std::span<const Event> history,
                                            std::span<const WindowFrom> quotas);

/// From each edge, included, until the next, excluded, at most `limit` units take effect. Grants
/// outside all edges violate it. REQUIRES: ascending edges.
[[nodiscard]] Checked check_aligned(std::span<const Event> history, std::span<const Time> edges,
                                    Word limit);

/// At every instant, the leases that were acquired and neither released nor expired weigh at most
/// `limit`, and at most the share of each when it is acquired; fences are unique and rise in the
/// order of the grants; no lease is renewed after its end. O(n log n).
[[nodiscard]] Checked check_leases(std::span<const LeaseRecord> history, Word limit);

/// Grants take effect at least `gap` apart. As check_rate().
[[nodiscard]] Checked check_gaps(std::span<const Event> history, Span gap);

/// Peeks before and after a refusal are answered alike.
[[nodiscard]] Checked check_refusals(std::span<const Looked> history);

/// Every answer carries its own request's number, and no request was answered twice.
[[nodiscard]] Checked check_answers(std::span<const Matched> history);

/// What remains is never negative, nor more than `limit`.
[[nodiscard]] Checked check_remaining(std::span<const Event> history, Word limit);

/// Until something is allowed, a refused request is refused again before `at + retry_after`, with
/// the rest of the same wait, and allowed from then on. `proven`, if given, counts the requests
/// that came 1 us before their hint or at it: a test should see some. REQUIRES: one key, times that
/// never decrease.
[[nodiscard]] Checked check_hints(std::span<const Event> history, std::size_t* proven = nullptr);

/// While a caller waits, from its refusal until it is allowed, units are granted at the rate: in no
/// interval of t microseconds fewer than units * t / period - burst. `burst` is the number of units
/// that may accumulate meanwhile, at least the largest cost; for windows, their limit. REQUIRES:
/// one key; waiting callers retry at their hint; times that never decrease.
[[nodiscard]] Checked check_work_conserving(std::span<const Event> history, const RateBound& bound);

/// Every wait completes exactly once, at most `slack` after its deadline. O(n).
[[nodiscard]] Checked check_waits_end(std::span<const Wait> waits, Span slack = Span{0});

/// First come, first served: while a wait lasts, at most `most` that arrived after it, with the
/// same priority and flow, are granted, but for its last `slack`: callers of a remote store hear of
/// their grants after delays that differ. REQUIRES: waits of one queue, in the order of their
/// arrival; none pending. O(n log n).
[[nodiscard]] Checked check_order(std::span<const Wait> waits, std::size_t most = 0,
                                  Span slack = Span{0});

/// While a call waits, units are granted at the rate, whichever waits are cancelled: as
/// check_work_conserving(). REQUIRES, here and below: waits of one queue, none pending. O(n log n).
[[nodiscard]] Checked check_waits_served(std::span<const Wait> waits, const RateBound& bound);

/// The same from `within` after `healed` on: after the end of faults, a queue moves again.
[[nodiscard]] Checked check_recovery(std::span<const Wait> waits, Time healed, Span within,
                                     const RateBound& bound);

/// A released or expired place is granted within `slack` if the first waiter fits. REQUIRES: all
/// leases of these waits and no others; no priorities and flows. O(n log n).
[[nodiscard]] Checked check_places(std::span<const Wait> waits, std::span<const LeaseRecord> leases,
                                   Word limit, Span slack = Span{0});

/// Both histories have the same grants at the same times, whatever refusals and peeks are in
/// between: polling more often must change nothing.
[[nodiscard]] Checked check_same_grants(std::span<const Event> a, std::span<const Event> b);

}  // namespace sluice::testing
