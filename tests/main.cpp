// The tests' main(), compiled once: in Catch2 v2 this is where the framework itself is compiled.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>

#include "tests/left_out.hpp"

int main(int argc, char** argv) {
  using namespace sluice::test;
  const std::string why = why_left_out == nullptr ? std::string() : why_left_out();
  if (why.empty()) return conclude(Catch::Session().run(argc, argv));
  std::printf("all test cases were left out (%s)\n", why.c_str());
  return left_out_code;
}

/// Read by ThreadSanitizer. Who drops a future's exception last frees it; libstdc++ counts its
/// owners in code that is not instrumented, so that an owner who read it seems to race with that.
extern "C" const char* __tsan_default_suppressions();
const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
