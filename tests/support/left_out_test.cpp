// What a test program ends with when a test case was left out. Threading: single-threaded.
#include "tests/left_out.hpp"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/catch.hpp"

using namespace sluice::test;

namespace {

/// The exit code of this program when it runs the test cases that `filter` names.
int run(const std::string& filter) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const int status = std::system(("'" + self + "' '" + filter + "' > /dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("of a case that passes", "[.example][.passes]") { CHECK(true); }

TEST_CASE("of a case that is left out", "[.example][.left_out]") { leave_out("it is an example"); }

TEST_CASE("of a case that fails as often as the code of what was left out", "[.example][.fails]") {
  for (int i = 0; i < left_out_code; ++i) CHECK(i < 0);
}

TEST_CASE("a program that left something out is neither passed nor failed, unless a case failed",
          "[support]") {
  CHECK(run("[.passes]") == 0);
  CHECK(run("[.left_out]") == left_out_code);
  CHECK(run("[.passes],[.left_out]") == left_out_code);
  CHECK(run("[.left_out],[.fails]") == 1);
  CHECK(run("[.example]") == 1);
  const int failed = run("[.fails]");
  CHECK(failed != 0);
  CHECK(failed != left_out_code);
}
