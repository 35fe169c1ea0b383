// Prints the values of this library in Catch2, version 2 or 3. The matchers need nothing else:
//
//     REQUIRE_THAT(store.trace(), sluice::testing::never_exceeds(25, 5s));
//
// Include it in every file of the test program with assertions about decisions or traces, or in no
// file that prints the same type.
#pragma once

#if __has_include(<catch2/catch_tostring.hpp>)
#include <catch2/catch_tostring.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

#include "sluice/testing/fixture.hpp"
#include "sluice/testing/matchers.hpp"
#include "sluice/testing/text.hpp"

namespace Catch {

template <>
struct StringMaker<sluice::Outcome> {
  static std::string convert(const sluice::Outcome& outcome) {
    return '{' + sluice::testing::to_text(outcome) + '}';
  }
};
template <>
struct StringMaker<sluice::Time> {
  static std::string convert(const sluice::Time& time) { return sluice::testing::to_text(time); }
};
template <>
struct StringMaker<sluice::Span> {
  static std::string convert(const sluice::Span& span) { return sluice::testing::to_text(span); }
};
template <>
struct StringMaker<sluice::testing::Trace> {
  static std::string convert(const sluice::testing::Trace& trace) {
    return sluice::testing::excerpt(trace);
  }
};
template <>
struct StringMaker<sluice::testing::Played> {
  static std::string convert(const sluice::testing::Played& played) {
    return played ? "as expected" : '\n' + played.failures;
  }
};
template <>
struct StringMaker<sluice::testing::Checked> {
  static std::string convert(const sluice::testing::Checked& checked) {
    return checked ? checked->what : "kept";
  }
};

}  // namespace Catch
