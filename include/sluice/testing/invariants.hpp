// Invariants: what no history of a limiter may break, whatever the callers do. Pure functions over
// what callers saw, which share no code with the rules: they judge by sums and instants alone.
//
//     History history;                              // note(bucket.try_acquire("a", 2), 2)...
//     const Checked checked = check_rate(history, {.burst = 5, .units = 10, .period = 1s});
//     if (checked) std::cerr << checked->what;      // names the interval and the excess
//
// Safety: check_rate (any interval), check_window and check_aligned (any window), check_leases,
// check_gaps, check_refusals, check_answers, check_remaining; under quotas that change:
// check_changing_rate, check_changing_window. Liveness: check_hints, check_work_conserving; of
// calls that wait: check_waits_end, check_places, check_order, check_waits_served, check_recovery.
// Comparing two histories: check_same_grants.
// Threading: pure; any thread.
#pragma once

#include <span>

#include "sluice/testing/detail/invariants_changes.hpp"
#include "sluice/testing/detail/invariants_grants.hpp"
#include "sluice/testing/detail/invariants_leases.hpp"
#include "sluice/testing/detail/invariants_liveness.hpp"
#include "sluice/testing/detail/invariants_waits.hpp"
#include "sluice/testing/history.hpp"

namespace sluice::testing {

/// At most `burst` units at once, and `units` more in each `period`.
struct RateBound {
  Word burst = 0;
  Word units = 0;
  Span period{1};
};

/// A quota and when it came into force: until the next one, at whose instant both count.
struct RateFrom {
  Time from{};
  RateBound bound;
};
/// The same of a limit on any window of `length`.
struct WindowFrom {
  Time from{};
  Span length{1};
  Word limit = 0;
};

/// In every interval of t microseconds at most burst + units * t / period units take effect.
/// O(n) if the grants take effect in the order of the history, else O(n log n).
[[nodiscard]] inline Checked check_rate(std::span<const Event> history, const RateBound& bound) {
  return detail::find_rate_breach(history, bound.burst, bound.units, bound.period.count());
}

/// In every half-open window of `length`, (t - length, t], at most `limit` units take effect.
/// O(n), or as check_rate().
[[nodiscard]] inline Checked check_window(std::span<const Event> history, Span length, Word limit) {
  return detail::find_window_breach(history, length, limit);
}

/// In every interval at most what the largest burst and the largest rate in force in it admit.
/// REQUIRES, here and below: instants that rise, the first before all grants. O(n c^2) with c
/// quotas.
[[nodiscard]] inline Checked check_changing_rate(std::span<const Event> history,
                                                 std::span<const RateFrom> quotas) {
  return detail::find_changing_rate_breach(history, quotas);
}

/// In every interval as long as the window of one of the quotas in force in it, at most the largest
/// of what these admit in that time: the limit, once for each of the quota's own windows begun, and
/// once more if it changed more than once.
[[nodiscard]] inline Checked check_changing_window(std::span<const Event> history,
                                                   std::span<const WindowFrom> quotas) {
  return detail::find_changing_window_breach(history, quotas);
}

/// From each edge, included, until the next, excluded, at most `limit` units take effect. Grants
/// outside of all edges break it. REQUIRES: rising edges.
[[nodiscard]] inline Checked check_aligned(std::span<const Event> history,
                                           std::span<const Time> edges, Word limit) {
  return detail::find_aligned_breach(history, edges, limit);
}

/// At every instant the leases that were acquired and neither released nor past their time weigh
/// at most `limit`, and at most the share of each when it is acquired; fences are unique and rise
/// in the order of the grants; nothing is renewed after its end. O(n log n).
[[nodiscard]] inline Checked check_leases(std::span<const LeaseEvent> history, Word limit) {
  return detail::find_lease_breach(history, limit);
}

/// Grants take effect at least `gap` apart. As check_rate().
[[nodiscard]] inline Checked check_gaps(std::span<const Event> history, Span gap) {
  return detail::find_gap_breach(history, gap);
}

/// What is asked beside a refusal is answered alike before and after it.
[[nodiscard]] inline Checked check_refusals(std::span<const Looked> history) {
  return detail::find_refusal_breach(history);
}

/// Every answer carries its own request's number, and no request was answered twice.
[[nodiscard]] inline Checked check_answers(std::span<const Matched> history) {
  return detail::find_answer_breach(history);
}

/// What remains is never negative, nor more than `limit`.
[[nodiscard]] inline Checked check_remaining(std::span<const Event> history, Word limit) {
  return detail::find_remaining_breach(history, limit);
}

/// Until something is allowed, who was refused is refused again before `at + retry_after`, with
/// the rest of the same wait, and allowed from then on. `proven`, if given, counts the requests
/// that came 1 us before their hint or at it: a test should see some.
/// REQUIRES: one key, instants that never go back.
[[nodiscard]] inline Checked check_hints(std::span<const Event> history,
                                         std::size_t* proven = nullptr) {
  return detail::find_hint_breach(history, proven);
}

/// While some caller is waiting, from its refusal until it is allowed, units are granted at the
/// rate: in no stretch of t microseconds fewer than units * t / period - burst.
/// `burst` is how many units may gather meanwhile, at least the largest cost; for windows, their
/// limit. REQUIRES: one key; who waits asks again at its hint; instants that never go back.
[[nodiscard]] inline Checked check_work_conserving(std::span<const Event> history,
                                                   const RateBound& bound) {
  return detail::find_idle_breach(history, bound.burst, bound.units, bound.period.count());
}

/// Every wait is told its end exactly once, at most `slack` after its deadline. O(n).
[[nodiscard]] inline Checked check_waits_end(std::span<const Wait> waits, Span slack = Span{0}) {
  return detail::find_endless_wait(waits, slack);
}

/// First come, first served: while a wait lasts, at most `most` that arrived after it, with the
/// same priority, are granted. REQUIRES: waits of one line, in the order of their arrival; none
/// pending. O(n log n).
[[nodiscard]] inline Checked check_order(std::span<const Wait> waits, std::size_t most = 0) {
  return detail::find_bypass(waits, most);
}

/// While somebody waits, units are granted at the rate, whoever gives up meanwhile: as
/// check_work_conserving(). REQUIRES, here and below: waits of one line, none pending. O(n log n).
[[nodiscard]] inline Checked check_waits_served(std::span<const Wait> waits,
                                                const RateBound& bound) {
  return detail::find_idle_line(waits, bound.burst, bound.units, bound.period.count(), Time{});
}

/// The same from `within` after `healed` on: once faults stop, a line moves again.
[[nodiscard]] inline Checked check_recovery(std::span<const Wait> waits, Time healed, Span within,
                                            const RateBound& bound) {
  return detail::find_idle_line(waits, bound.burst, bound.units, bound.period.count(),
                                healed + within);
}

/// A place that was given back, or whose holder has vanished and whose time is over, is taken
/// within `slack` if the first in line fits. REQUIRES: all leases of these waits and no others; no
/// priorities. O(n log n).
[[nodiscard]] inline Checked check_places(std::span<const Wait> waits,
                                          std::span<const LeaseEvent> leases, Word limit,
                                          Span slack = Span{0}) {
  return detail::find_vacancy(waits, leases, limit, slack);
}

/// The same grants at the same instants in both, whatever was refused or asked in between: polling
/// more often must change nothing.
[[nodiscard]] inline Checked check_same_grants(std::span<const Event> a, std::span<const Event> b) {
  return detail::find_difference(a, b);
}

}  // namespace sluice::testing
