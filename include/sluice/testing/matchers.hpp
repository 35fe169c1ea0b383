// Matchers of traces and decisions: properties of a limiter, as one readable line each. They need
// no test framework; REQUIRE_THAT of Catch2 and EXPECT_THAT of GoogleTest accept them.
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

#include <functional>
#include <ostream>
#include <string>
#include <utility>

#include "sluice/testing/invariants.hpp"
#include "sluice/testing/trace.hpp"

namespace sluice::testing {

/// A claim about a T. Combine claims by `&&`, `||` and `!`; the sentence is that of the part that
/// does not hold.
///
///     const auto polite = never_exceeds(25, 5s) && spacing_at_least(100ms);
///     if (const Checked broken = polite.check(trace)) std::cerr << broken->what << '\n';
///
/// A plain value, used by one thread at a time.
template <class T>
class Matcher {
 public:
  /// Empty if the claim holds.
  using Check = std::function<Checked(const T&)>;

  /// `description`: the claim, as in "never exceeds 25 in 5 s".
  Matcher(std::string description, Check check)
      : description_(std::move(description)), check_(std::move(check)) {}

  /// Empty if the claim holds for `value`, else a sentence with the violation.
  [[nodiscard]] Checked check(const T& value) const { return check_(value); }
  [[nodiscard]] const std::string& description() const noexcept { return description_; }

  // The interfaces of the frameworks. Catch2 calls toString() after match(), without the value, so
  // that match() stores the sentence.

  [[nodiscard]] bool match(const T& value) const {
    const Checked broken = check_(value);
    broken_ = broken ? broken->what : std::string();
    return !broken;
  }
  [[nodiscard]] std::string toString() const {
    return broken_.empty() ? description_ : description_ + "\nbut " + broken_;
  }

  using is_gtest_matcher = void;
  bool MatchAndExplain(const T& value, std::ostream* listener) const {
    const Checked broken = check_(value);
    if (broken && listener != nullptr) *listener << broken->what;
    return !broken;
  }
  void DescribeTo(std::ostream* out) const { *out << description_; }
  void DescribeNegationTo(std::ostream* out) const { *out << "not (" << description_ << ')'; }

 private:
  std::string description_;
  Check check_;
  mutable std::string broken_;
};

template <class T>
[[nodiscard]] Matcher<T> operator&&(Matcher<T> a, Matcher<T> b) {
  std::string description = a.description() + " and " + b.description();
  return {std::move(description), [a = std::move(a), b = std::move(b)](const T& value) {
            Checked broken = a.check(value);
            return broken ? broken : b.check(value);
          }};
}

template <class T>
[[nodiscard]] Matcher<T> operator||(Matcher<T> a, Matcher<T> b) {
  std::string description = '(' + a.description() + " or " + b.description() + ')';
  return {std::move(description), [a = std::move(a), b = std::move(b)](const T& value) -> Checked {
            const Checked first = a.check(value);
            if (!first) return {};
            const Checked second = b.check(value);
            if (!second) return {};
            return Breach{first->what + "; and " + second->what, 0};
          }};
}

template <class T>
[[nodiscard]] Matcher<T> operator!(Matcher<T> a) {
  std::string description = "not (" + a.description() + ')';
  return {std::move(description), [a = std::move(a)](const T& value) -> Checked {
            if (a.check(value)) return {};
            return Breach{"it " + a.description(), 0};
          }};
}

using TraceMatcher = Matcher<Trace>;
using DecisionMatcher = Matcher<Decision>;

/// In no half-open window of `span`, (t - span, t], more than `units` are granted, over all keys.
/// Throws std::invalid_argument if `span` is not positive.
[[nodiscard]] TraceMatcher never_exceeds(Word units, Span span);

/// At most `burst` units at once and `units` more in each `period`, over every interval. Throws
/// std::invalid_argument if the period is not positive.
[[nodiscard]] TraceMatcher keeps_rate(RateBound bound);

/// Grants are at least `gap` apart.
[[nodiscard]] TraceMatcher spacing_at_least(Span gap);

/// Each caller, or each key if no caller has a name, is granted an equal share of all units, up to
/// `tolerance` of that share: 0.1 is 10 % more or less. Callers without a grant count. Throws
/// std::invalid_argument if the tolerance is negative.
[[nodiscard]] TraceMatcher share_within(double tolerance);

/// After each mark whose text contains `about`, a call is granted within `span`; only calls made
/// after the mark count. Set the mark at the end of the fault, or at its beginning to include its
/// length. A trace without such a mark violates the claim.
[[nodiscard]] TraceMatcher recovers_within(Span span, sluice::detail::TextArg named = {});

/// Every refused request that was repeated was refused until its hint and allowed from then on, as
/// long as nothing else was granted on the key. Plans of several steps are not checked.
[[nodiscard]] TraceMatcher refused_with_exact_hint();

/// The calls of the trace, including failed ones, are at most `most` for each grant. Throws
/// std::invalid_argument if `most` is negative.
[[nodiscard]] TraceMatcher at_most_operations_per_grant(double most);

/// No call failed.
[[nodiscard]] TraceMatcher never_fails();

/// The trace equals `recorded`, call for call; see find_difference().
[[nodiscard]] TraceMatcher same_as(Trace recorded);

/// `matcher` holds for the calls on each key alone.
[[nodiscard]] TraceMatcher each_key(TraceMatcher matcher);

/// `matcher` holds for the calls on this key: "alice" for the keys of a tag, Key{"alice", "api"},
/// or the text in traces, "{alice}:api". A trace without such a call violates the claim.
[[nodiscard]] TraceMatcher for_key(const Key& key, TraceMatcher matcher);

/// The decision is allowed.
[[nodiscard]] DecisionMatcher allowed();

/// The decision is allowed, and `remaining` units are left.
[[nodiscard]] DecisionMatcher allowed(Word remaining);

/// The decision is a refusal.
[[nodiscard]] DecisionMatcher refused();

/// The decision is a refusal with exactly this hint.
[[nodiscard]] DecisionMatcher refused(Span retry_after);

}  // namespace sluice::testing
