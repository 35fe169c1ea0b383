// What both tools do with their command line. Threading: one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace sluice::tool {

/// Parses and calls `run`, whose result it returns. 2 if the arguments make no sense, 0 for --help,
/// 1 after an exception.
[[nodiscard]] int parse_and_run(CLI::App& app, int argc, char** argv,
                                const std::function<int()>& run);

}  // namespace sluice::tool
