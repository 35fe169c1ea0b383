// The figures: each is a command of sluice_chaos, with its options. Threading: the main thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/fleet.hpp"

namespace CLI {
class App;
}

namespace sluice::chaos {

/// Adds options to a command. Its functions alone know the parser, which is long to compile.
class Command {
 public:
  explicit Command(CLI::App* command) : command_(command) {}
  void add(const std::string& name, double& value, const std::string& text);
  void add(const std::string& name, bool& flag, const std::string& text);
  /// With `most`: from 1 to that.
  void add(const std::string& name, int& value, const std::string& text, int most = 0);
  void add(const std::string& name, std::size_t& value, const std::string& text,
           std::size_t most = 0);
  /// The options of the load that every figure with processes has.
  void add(Load& load);

 private:
  CLI::App* command_;
};

class Figures {
 public:
  explicit Figures(CLI::App& app) : app_(app) {}
  Command add(const std::string& name, const std::string& text, std::function<void(Report&)> run);
  /// Those that the command line names, or all.
  void run(Report& report, bool all) const;

 private:
  struct Figure {
    CLI::App* command;
    std::function<void(Report&)> run;
  };
  CLI::App& app_;
  std::vector<Figure> figures_;
};

void add_crash(Figures& figures);
void add_outage(Figures& figures);
void add_cuts(Figures& figures);
void add_flush(Figures& figures);
void add_look_up(Figures& figures);
void add_crowd(Figures& figures);
void add_sentinel(Figures& figures);
void add_cluster(Figures& figures);
void add_cpu(Figures& figures);
void add_clock(Figures& figures);
void add_hostile(Figures& figures);
void add_lone(Figures& figures);

/// A duration in seconds as the command line has it.
[[nodiscard]] inline Span seconds(double number) {
  return Span{static_cast<std::int64_t>(number * 1e6)};
}

}  // namespace sluice::chaos
