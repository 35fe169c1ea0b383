// The commands of sluice-sim that run scenarios. Each adds itself to the command line. Threading:
// main's thread; the runs have threads of their own.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace sluice::tool {

/// What to do after the command line was parsed: returns the exit code.
using Command = std::function<int()>;

/// Exit codes of commands that run scenarios.
inline constexpr int held = 0;
inline constexpr int objected = 1;
inline constexpr int bad_input = 2;
inline constexpr int undecided = 3;
inline constexpr int interrupted = 130;

/// Adds list, run, sweep, compare, check, replay, shrink and fuzz. `chosen` becomes the one that
/// the command line names.
void add_study_commands(CLI::App& app, Command& chosen);

}  // namespace sluice::tool
