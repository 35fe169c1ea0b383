// Matchers of traces and decisions: properties of a limiter, as one readable line each.
//
//     CHECK_THAT(store.trace(), never_exceeds(25, 5s) && share_within(0.1));
//     CHECK_THAT(store.trace(), each_key(spacing_at_least(1s)));
//     CHECK_THAT(bucket.try_acquire("alice"), refused(100ms));
//
// A grant is an allowed call with its cost, at the time when it takes effect, which for a
// reservation is later; peeks, refunds, releases and configurations are not grants. Times in the
// sentences count from the start of the trace. The checkers are those of
// sluice/testing/invariants.hpp. Threading: pure functions.
#pragma once

#include <string>
#include <utility>

#include "sluice/testing/detail/trace_checks.hpp"
#include "sluice/testing/invariants.hpp"
#include "sluice/testing/matcher.hpp"
#include "sluice/testing/trace_text.hpp"

namespace sluice::testing {

using TraceMatcher = Matcher<Trace>;
using DecisionMatcher = Matcher<Decision>;

/// In no half-open window of `span`, (t - span, t], more than `units` are granted, over all keys.
/// Throws std::invalid_argument if `span` is not positive.
[[nodiscard]] inline TraceMatcher never_exceeds(Word units, Span span) {
  detail::require_positive("never_exceeds: the window", span);
  return {
      "never exceeds " + std::to_string(units) + " in " + to_text(span),
      [=](const Trace& trace) { return check_window(detail::requests_of(trace), span, units); }};
}

/// At most `burst` units at once and `units` more in each `period`, over every interval. Throws
/// std::invalid_argument if the period is not positive.
[[nodiscard]] inline TraceMatcher keeps_rate(RateBound bound) {
  detail::require_positive("keeps_rate: the period", bound.period);
  return {"keeps to " + std::to_string(bound.burst) + " at once and " +
              std::to_string(bound.units) + " every " + to_text(bound.period),
          [=](const Trace& trace) { return check_rate(detail::requests_of(trace), bound); }};
}

/// Grants are at least `gap` apart.
[[nodiscard]] inline TraceMatcher spacing_at_least(Span gap) {
  return {"spaces its grants by " + to_text(gap) + " or more",
          [=](const Trace& trace) { return check_gaps(detail::requests_of(trace), gap); }};
}

/// Each caller, or each key if no caller has a name, is granted an equal share of all units, up to
/// `tolerance` of that share: 0.1 is 10 % more or less. Callers without a grant count. Throws
/// std::invalid_argument if the tolerance is negative.
[[nodiscard]] inline TraceMatcher share_within(double tolerance) {
  detail::require_share("share_within: the tolerance", tolerance);
  return {"shares its grants equally within " + detail::percent(tolerance),
          [=](const Trace& trace) { return detail::find_unequal_share(trace, tolerance); }};
}

/// After each mark whose text contains `about`, a call is granted within `span`; only calls made
/// after the mark count. Set the mark at the end of the fault, or at its beginning to include its
/// length. A trace without such a mark violates the claim.
[[nodiscard]] inline TraceMatcher recovers_within(Span span, sluice::detail::TextArg named = {}) {
  std::string about(named.view());
  std::string what = "recovers within " + to_text(span);
  if (!about.empty()) what += " of \"" + about + '"';
  return {std::move(what), [span, about = std::move(about)](const Trace& trace) {
            return detail::find_late_recovery(trace, span, about);
          }};
}

/// Every refused request that was repeated was refused until its hint and allowed from then on, as
/// long as nothing else was granted on the key. Plans of several steps are not checked.
[[nodiscard]] inline TraceMatcher refused_with_exact_hint() {
  return {"refuses with exact hints",
          [](const Trace& trace) { return detail::find_inexact_hint(trace); }};
}

/// The calls of the trace, including failed ones, are at most `most` for each grant. Throws
/// std::invalid_argument if `most` is negative.
[[nodiscard]] inline TraceMatcher at_most_operations_per_grant(double most) {
  detail::require_share("at_most_operations_per_grant: the number", most);
  return {"asks the store at most " + detail::rounded(most) + " times a grant",
          [=](const Trace& trace) { return detail::find_waste(trace, most); }};
}

/// No call failed.
[[nodiscard]] inline TraceMatcher never_fails() {
  return {"never fails", [](const Trace& trace) { return detail::find_failure(trace); }};
}

/// The trace equals `recorded`, call for call; see find_difference().
[[nodiscard]] inline TraceMatcher same_as(Trace recorded) {
  return {"is as recorded", [recorded = std::move(recorded)](const Trace& trace) {
            return find_difference(recorded, trace);
          }};
}

/// `matcher` holds for the calls on each key alone.
[[nodiscard]] inline TraceMatcher each_key(TraceMatcher matcher) {
  std::string what = "each key " + matcher.description();
  return {std::move(what), [matcher = std::move(matcher)](const Trace& trace) -> Checked {
            for (const auto& [key, calls] : detail::split_by_key(trace)) {
              if (const Checked broken = matcher.check(calls)) {
                return Breach{"of key " + key + ", " + broken->what, broken->excess};
              }
            }
            return {};
          }};
}

/// `matcher` holds for the calls on this key: "alice" for the keys of a tag, Key{"alice", "api"},
/// or the text in traces, "{alice}:api". A trace without such a call violates the claim.
[[nodiscard]] inline TraceMatcher for_key(const Key& key, TraceMatcher matcher) {
  const std::string tag(key.tag());
  const std::string name(key.name());
  std::string what = "for \"" + tag + "\" " + matcher.description();
  return {std::move(what), [tag, name, matcher = std::move(matcher)](const Trace& trace) {
            const Trace calls = calls_on(trace, Key{tag, name});
            if (calls.calls.empty()) return Checked{Breach{"\"" + tag + "\" was never asked", 0}};
            return matcher.check(calls);
          }};
}

namespace detail {

inline DecisionMatcher decision_is(std::string what, std::function<bool(const Decision&)> holds) {
  return {std::move(what), [holds = std::move(holds)](const Decision& decision) -> Checked {
            if (holds(decision)) return {};
            return Breach{"it was " + to_string(decision), 0};
          }};
}

}  // namespace detail

/// The decision is allowed.
[[nodiscard]] inline DecisionMatcher allowed() {
  return detail::decision_is("is allowed", [](const Decision& d) { return d.allowed; });
}

/// The decision is allowed, and `remaining` units are left.
[[nodiscard]] inline DecisionMatcher allowed(Word remaining) {
  return detail::decision_is(
      "is allowed with " + std::to_string(remaining) + " left",
      [=](const Decision& d) { return d.allowed && d.remaining == remaining; });
}

/// The decision is a refusal.
[[nodiscard]] inline DecisionMatcher refused() {
  return detail::decision_is("is refused", [](const Decision& d) { return !d.allowed; });
}

/// The decision is a refusal with exactly this hint.
[[nodiscard]] inline DecisionMatcher refused(Span retry_after) {
  return detail::decision_is(
      "is refused, retry after " + to_text(retry_after),
      [=](const Decision& d) { return !d.allowed && d.retry_after == retry_after; });
}

}  // namespace sluice::testing
