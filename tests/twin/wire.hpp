// The bytes that go to the scripts and come back, written down a second time, apart from the
// library's own: the test must not share its mistakes. Threading: pure functions.
#pragma once

#include <string>

#include "sluice/operation.hpp"

namespace sluice::test {

/// A word as eight little-endian bytes, and back; zero where the bytes end too early.
[[nodiscard]] std::string le64(Word value);
[[nodiscard]] Word read_le64(const std::string& bytes, std::size_t at);

[[nodiscard]] std::string hex(const std::string& bytes);

/// The arguments of one step.
[[nodiscard]] std::string pack_args(const Arguments& args);

/// The name of the script of one step.
[[nodiscard]] std::string script_name(const Operation& row);

/// Kernel's view of a stored state: its words, or why there are none.
struct Loaded {
  Word status = Verdict::allowed;
  StateWords words{};
};
[[nodiscard]] Loaded load(const std::string& raw, bool wrong_type, StateKind kind);

/// The bytes of a state, as the scripts write them.
[[nodiscard]] std::string encode(StateKind kind, const StateWords& words);

}  // namespace sluice::test
