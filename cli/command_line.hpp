// What both tools do with their command line. Threading: one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>

namespace sluice::tool {

/// Parses and calls `run`, whose result it returns; 0 for --help and --version. 2 if the arguments
/// make no sense, after an exception, and if the output cannot be written. Without memory the
/// program ends, with 2.
[[nodiscard]] int parse_and_run(CLI::App& app, int argc, char** argv,
                                const std::function<int()>& run);

/// Throws std::runtime_error if not all of the output can be written.
void flush_output();

/// Accepts decimal numbers in these bounds, which CLI11 would wrap, cut or read as octal.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least = 0, std::uint64_t most = UINT64_MAX);

}  // namespace sluice::tool
