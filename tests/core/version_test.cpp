// The version's macros agree with each other, and with CMake. Threading: single-threaded.
#include "sluice/version.hpp"

#include <string>

#include "tests/catch.hpp"

TEST_CASE("the numbers of the version are those of its text, which CMake has read") {
  CHECK(std::to_string(SLUICE_VERSION_MAJOR) + "." + std::to_string(SLUICE_VERSION_MINOR) + "." +
            std::to_string(SLUICE_VERSION_PATCH) ==
        SLUICE_VERSION_STRING);
  CHECK(std::string(SLUICE_PROJECT_VERSION) == SLUICE_VERSION_STRING);
}

TEST_CASE("versions compare as numbers in the preprocessor") {
  CHECK(SLUICE_VERSION / 1000000 == SLUICE_VERSION_MAJOR);
  CHECK(SLUICE_VERSION / 1000 % 1000 == SLUICE_VERSION_MINOR);
  CHECK(SLUICE_VERSION % 1000 == SLUICE_VERSION_PATCH);
#if SLUICE_VERSION < 1000
  FAIL("every version is 0.1.0 or later");
#endif
}
