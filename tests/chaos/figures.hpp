// The figures: each is a command of sluice_chaos, with its options. Threading: the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "tests/chaos/fleet.hpp"

namespace sluice::chaos {

/// A command and what it runs.
struct Figure {
  CLI::App* command;
  std::function<void(Report&)> run;
};
using Figures = std::vector<Figure>;

void add_crash(CLI::App& app, Figures& figures);
void add_outage(CLI::App& app, Figures& figures);
void add_cuts(CLI::App& app, Figures& figures);
void add_flush(CLI::App& app, Figures& figures);
void add_look_up(CLI::App& app, Figures& figures);
void add_crowd(CLI::App& app, Figures& figures);
void add_sentinel(CLI::App& app, Figures& figures);
void add_cluster(CLI::App& app, Figures& figures);
void add_cpu(CLI::App& app, Figures& figures);
void add_clock(CLI::App& app, Figures& figures);
void add_hostile(CLI::App& app, Figures& figures);
void add_lone(CLI::App& app, Figures& figures);

/// A duration in seconds as the command line has it.
[[nodiscard]] inline Span seconds(double number) {
  return Span{static_cast<std::int64_t>(number * 1e6)};
}

/// The options of the load that every figure with processes has.
void add_load(CLI::App& command, Load& load);

}  // namespace sluice::chaos
