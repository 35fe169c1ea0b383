// What both tools do with their command line. Threading: one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace sluice::tool {

/// Parses and calls `run`, whose result it returns. 2 if the arguments make no sense, or after a
/// std::invalid_argument; 0 for --help; 1 after another exception.
[[nodiscard]] int parse_and_run(CLI::App& app, int argc, char** argv,
                                const std::function<int()>& run);

/// Accepts decimal numbers that fit in 64 bits, which CLI11 would wrap, cut or read as octal.
[[nodiscard]] CLI::Validator whole_number();

}  // namespace sluice::tool
