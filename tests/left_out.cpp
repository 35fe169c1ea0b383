// The list of what was left out.
#include "tests/left_out.hpp"

#include <cstdio>
#include <map>

#include "tests/catch.hpp"

namespace sluice::test {
namespace {

/// Why, by the name of the test case.
std::map<std::string, std::string>& left_out() {
  static std::map<std::string, std::string> cases;
  return cases;
}

}  // namespace

void leave_out(const std::string& why) {
  left_out().insert_or_assign(Catch::getResultCapture().getCurrentTestName(), why);
}

int conclude(int result) {
  if (!left_out().empty()) {
    std::printf("%zu test cases were left out:\n", left_out().size());
  }
  for (const auto& [name, why] : left_out()) std::printf("  %s (%s)\n", name.c_str(), why.c_str());
  // Catch2 tells how many assertions failed, which may be any number.
  if (result != 0) return result == left_out_code ? 1 : result;
  return left_out().empty() ? 0 : left_out_code;
}

}  // namespace sluice::test
