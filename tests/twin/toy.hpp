// Two rules of the tests' own, which use all that a rule may use: they prove drivers and harness.
// Threading: constants.
#pragma once

#include "tests/twin/scripts.hpp"
#include "tests/twin/tamper.hpp"

namespace sluice::test {

/// A rule over a variable state (two rows), and one over a fixed one, with eight arguments and
/// output words.
[[nodiscard]] std::span<const Subject> toy_subjects();

/// The rows of both.
[[nodiscard]] std::span<const Operation* const> toy_operations();

/// Their Lua twins.
void add_toys(LuaFiles& files);

}  // namespace sluice::test
