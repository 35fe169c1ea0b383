// The bugs that the mutation run plants. A file of mutants/ has those of the Lua file of its name,
// below their sections, each a replacement that must match exactly once:
//
//   # a comment
//   piece gate_view
//     a name: code => another code
//     another bug: code\nof two lines =>
//
// A section is "piece", "operation", "fast" or "fast_plan" with its name, as in the Lua file, or
// "kernel" with a file of C++. Indentation counts neither there nor here, nor do spaces around a
// code. In a code \n ends a line, and \\ is a backslash. A bug that means the same as the original
// has no place here: the run would fail, because nothing can catch it. Nor has one that some four
// hundred requests find, beside a bug of its section that hides better.
// Threading: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/twin/scripts.hpp"

namespace sluice::test {

struct Mutant {
  std::string file;  // "gate.txt"
  int line;
  std::string section;  // "piece gate_view", or "kernel src/rules/token_bucket.cpp"
  std::string name;
  std::string from;
  std::string to;

  /// The path of the kernel that it is planted in; empty: a section of a Lua file.
  [[nodiscard]] std::string kernel() const;
};

/// Throws std::runtime_error, with the file and the line, if the text has another form.
[[nodiscard]] std::vector<Mutant> parse_mutants(const std::string& file, std::string_view text);

/// Those of all files of mutants/.
[[nodiscard]] std::vector<Mutant> read_mutants();

/// The Lua files with the bug. Throws std::runtime_error, with the file and the line, if the Lua
/// file of its name has no such section, or if the code does not stand there exactly once.
[[nodiscard]] LuaFiles plant(const LuaFiles& files, const Mutant& mutant);

/// The source of a kernel, with its own header, if it has one, in the place of the line that
/// includes it.
[[nodiscard]] std::string kernel_source(const std::string& path);
/// The same with the bug; throws as above.
[[nodiscard]] std::string plant_in_kernel(const Mutant& mutant);

/// The sections of the Lua files in which no bug is planted, each with its file.
[[nodiscard]] std::vector<std::string> unplanted(const LuaFiles& files,
                                                 std::span<const Mutant> mutants);

}  // namespace sluice::test
