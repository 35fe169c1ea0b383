// Matcher: a claim about a value that describes its violation in a sentence. It needs no test
// framework; REQUIRE_THAT of Catch2 and EXPECT_THAT of GoogleTest accept it.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <utility>

#include "sluice/testing/history.hpp"

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

}  // namespace sluice::testing
