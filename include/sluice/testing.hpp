// Support for unit tests of limited code, for any test framework: limiters on a virtual clock, a
// store with injected faults, a recording of the calls, and matchers for it. See docs/testing.md.
//
// Not included: sluice/testing/catch2.hpp and gtest.hpp, which print values in those frameworks;
// replaying_store.hpp and world.hpp, for tests with recordings and coroutines; conformance.hpp, for
// your own stores.
#pragma once

#include "sluice/sluice.hpp"
#include "sluice/testing/fixture.hpp"
#include "sluice/testing/matchers.hpp"
