// The tests' main(), compiled once: in Catch2 v2 this is where the framework itself is compiled.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "tests/left_out.hpp"

int main(int argc, char** argv) { return sluice::test::conclude(Catch::Session().run(argc, argv)); }

/// Read by ThreadSanitizer. Who drops a future's exception last frees it; libstdc++ counts its
/// owners in code that is not instrumented, so that an owner who read it seems to race with that.
extern "C" const char* __tsan_default_suppressions();
const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
