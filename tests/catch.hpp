// The one Catch2 include of the tests, and what versions 2 and 3 name differently.
// Threading: assertions belong to the thread that runs the test case.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

namespace sluice::test {

/// Matches a text that holds this one.
inline auto contains_text(const std::string& text) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Matchers::Contains(text);
#endif
}

}  // namespace sluice::test
