// The matchers: each claim as a description and a check.
#include "sluice/testing/matchers.hpp"

#include "sluice/testing/invariants.hpp"
#include "sluice/testing/text.hpp"
#include "src/testing/trace_checks.hpp"
#include "src/testing/trace_events.hpp"

namespace sluice::testing {
namespace {

DecisionMatcher decision_is(std::string what, std::function<bool(const Decision&)> holds) {
  return {std::move(what), [holds = std::move(holds)](const Decision& decision) -> Checked {
            if (holds(decision)) return {};
            return Breach{"it was " + to_string(decision), 0};
          }};
}

}  // namespace

TraceMatcher never_exceeds(Word units, Span span) {
  detail::require_positive("never_exceeds: the window", span);
  return {
      "never exceeds " + std::to_string(units) + " in " + to_text(span),
      [=](const Trace& trace) { return check_window(detail::requests_of(trace), span, units); }};
}

TraceMatcher keeps_rate(RateBound bound) {
  detail::require_positive("keeps_rate: the period", bound.period);
  return {"keeps to " + std::to_string(bound.burst) + " at once and " +
              std::to_string(bound.units) + " every " + to_text(bound.period),
          [=](const Trace& trace) { return check_rate(detail::requests_of(trace), bound); }};
}

TraceMatcher spacing_at_least(Span gap) {
  return {"spaces its grants by " + to_text(gap) + " or more",
          [=](const Trace& trace) { return check_gaps(detail::requests_of(trace), gap); }};
}

TraceMatcher share_within(double tolerance) {
  detail::require_share("share_within: the tolerance", tolerance);
  return {"shares its grants equally within " + detail::percent(tolerance),
          [=](const Trace& trace) { return detail::find_unequal_share(trace, tolerance); }};
}

TraceMatcher recovers_within(Span span, sluice::detail::TextArg named) {
  std::string about(named.view());
  std::string what = "recovers within " + to_text(span);
  if (!about.empty()) what += " of \"" + about + '"';
  return {std::move(what), [span, about = std::move(about)](const Trace& trace) {
            return detail::find_late_recovery(trace, span, about);
          }};
}

TraceMatcher refused_with_exact_hint() {
  return {"refuses with exact hints",
          [](const Trace& trace) { return detail::find_inexact_hint(trace); }};
}

TraceMatcher at_most_operations_per_grant(double most) {
  detail::require_share("at_most_operations_per_grant: the number", most);
  return {"asks the store at most " + detail::rounded(most) + " times a grant",
          [=](const Trace& trace) { return detail::find_waste(trace, most); }};
}

TraceMatcher never_fails() {
  return {"never fails", [](const Trace& trace) { return detail::find_failure(trace); }};
}

TraceMatcher same_as(Trace recorded) {
  return {"is as recorded", [recorded = std::move(recorded)](const Trace& trace) {
            return find_difference(recorded, trace);
          }};
}

TraceMatcher each_key(TraceMatcher matcher) {
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

TraceMatcher for_key(const Key& key, TraceMatcher matcher) {
  const std::string tag(key.tag());
  const std::string name(key.name());
  std::string what = "for \"" + tag + "\" " + matcher.description();
  return {std::move(what), [tag, name, matcher = std::move(matcher)](const Trace& trace) {
            const Trace calls = calls_on(trace, Key{tag, name});
            if (calls.calls.empty()) return Checked{Breach{"\"" + tag + "\" was never asked", 0}};
            return matcher.check(calls);
          }};
}

DecisionMatcher allowed() {
  return decision_is("is allowed", [](const Decision& d) { return d.allowed; });
}

DecisionMatcher allowed(Word remaining) {
  return decision_is("is allowed with " + std::to_string(remaining) + " left",
                     [=](const Decision& d) { return d.allowed && d.remaining == remaining; });
}

DecisionMatcher refused() {
  return decision_is("is refused", [](const Decision& d) { return !d.allowed; });
}

DecisionMatcher refused(Span retry_after) {
  return decision_is("is refused, retry after " + to_text(retry_after),
                     [=](const Decision& d) { return !d.allowed && d.retry_after == retry_after; });
}

}  // namespace sluice::testing
