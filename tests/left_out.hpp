// Tests that cannot run here, because what they need is not there: they are reported as left out,
// and never as passed. Threading: the thread that runs the test case.
#pragma once

#include <string>

namespace sluice::test {

/// What a test program ends with if nothing failed and something was left out; ctest then reports
/// it as skipped. See sluice_test() in cmake/targets.cmake.
inline constexpr int left_out_code = 77;

/// Notes that the running test case is left out, or one of its stores. The case returns then.
void leave_out(const std::string& why);

/// Defined by a program of whose test cases none can run if this is not empty: why not.
[[gnu::weak]] std::string why_left_out();

/// What the program ends with if Catch2 says `result`, after the list of what was left out.
[[nodiscard]] int conclude(int result);

}  // namespace sluice::test
