// The one Catch2 include of the tests: versions 2 and 3 keep their headers in different places.
// Threading: assertions belong to the thread that runs the test case.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
