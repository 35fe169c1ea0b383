// What a unit test of limited code needs, without a test framework: limiters and a clock that
// stands still, a store that fails when told to, a record of what was asked, and matchers of it.
// See docs/testing.md.
//
// Beside it: sluice/testing/catch2.hpp and gtest.hpp, how the frameworks print values;
// replaying_store.hpp and world.hpp, for tests of recordings and of coroutines; conformance.hpp,
// for stores of your own.
#pragma once

#include "sluice/sluice.hpp"
#include "sluice/testing/fixture.hpp"
#include "sluice/testing/matchers.hpp"
