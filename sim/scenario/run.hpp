// One run of a scenario: its figures, its charts, and what the judges say. Threading: a run belongs
// to one thread; several may run side by side.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/figures.hpp"
#include "sim/scenario/recorder.hpp"
#include "sluice/sim/scenario.hpp"
#include "sluice/sim/trace.hpp"

namespace sluice::sim::scenario {

/// What a judge has found against a run.
struct Objection {
  std::string judge;
  std::string text;
};

struct WorstWindow {
  Word limit = 0;
  Span window{0};
  std::uint64_t worst = 0;  ///< calls that came in a window
};

struct RunResult {
  Figures figures;
  Series series;
  std::vector<std::pair<double, Span>> wait_quantiles;
  std::vector<WorstWindow> windows;
  std::vector<double> workers;  ///< each one's share of the successes
  std::vector<Objection> objections;
  std::vector<std::string> judges;  ///< that have looked
  std::uint64_t trace = 0;
};

struct RunOptions {
  Span recovery{0};  ///< see JudgeOptions
  const std::atomic<bool>* stop = nullptr;
  /// Called now and then with the virtual time and the number of events so far.
  std::function<void(Span, std::uint64_t)> progress;
  TraceObserver observer = nullptr;
  void* observed = nullptr;
};

/// Thrown by run() when it was stopped.
struct Stopped {};

[[nodiscard]] RunResult run(const Scenario& scenario, const RunOptions& options = {});

}  // namespace sluice::sim::scenario
