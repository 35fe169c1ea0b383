// Prints the values of this library in GoogleTest, and has assertions without GoogleMock. With
// GoogleMock the matchers need nothing else:
//
//     EXPECT_TRUE(meets(store.trace(), never_exceeds(25, 5s)));   // GoogleTest alone
//     EXPECT_THAT(store.trace(), never_exceeds(25, 5s));          // with <gmock/gmock.h>
//
// A Span alone is printed as bytes, because GoogleTest does not allow printers for types of the
// standard library.
#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "sluice/testing/fixture.hpp"
#include "sluice/testing/matchers.hpp"
#include "sluice/testing/text.hpp"

namespace sluice {

inline void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << testing::to_text(outcome);
}
inline void PrintTo(const Time& time, std::ostream* out) { *out << testing::to_text(time); }

namespace testing {

inline void PrintTo(const Trace& trace, std::ostream* out) { *out << excerpt(trace); }
inline void PrintTo(const Breach& breach, std::ostream* out) { *out << breach.what; }
inline void PrintTo(const Played& played, std::ostream* out) {
  *out << (played ? "as expected\n" : played.failures);
}

/// Success, or the claim and how it is violated.
template <class T>
[[nodiscard]] ::testing::AssertionResult meets(const T& value, const Matcher<T>& matcher) {
  const Checked broken = matcher.check(value);
  if (!broken) return ::testing::AssertionSuccess() << "it " << matcher.description();
  return ::testing::AssertionFailure()
         << "expected that it " << matcher.description() << ", but " << broken->what << '\n'
         << ::testing::PrintToString(value);
}

/// Success, or the rows of a table with unexpected answers.
[[nodiscard]] inline ::testing::AssertionResult passes(const Played& played) {
  if (played) return ::testing::AssertionSuccess() << "every row was answered as expected";
  return ::testing::AssertionFailure() << played.failures;
}

/// Success, or how an invariant is violated.
[[nodiscard]] inline ::testing::AssertionResult holds(const Checked& checked) {
  if (!checked) return ::testing::AssertionSuccess() << "the invariant holds";
  return ::testing::AssertionFailure() << checked->what;
}

}  // namespace testing
}  // namespace sluice
