// Two rules of the tests' own, which use all that a rule may use: they prove drivers and harness.
// Threading: constants.
#pragma once

#include "tests/twin/scripts.hpp"
#include "tests/twin/tamper.hpp"

namespace sluice::test {

/// A rule over a wide state (two rows), and one over a cell, with eight arguments and output words.
[[nodiscard]] std::span<const Subject> toy_subjects();

/// Their Lua twins.
void add_toys(Fragments& fragments);
[[nodiscard]] const std::vector<ScriptTables::Rule>& toy_rules();

}  // namespace sluice::test
