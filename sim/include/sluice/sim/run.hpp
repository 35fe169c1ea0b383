// run(): one run of a Scenario: its figures, its charts, and what the judges say. Threading: a run
// belongs to one thread; several may run side by side.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/sim/figures.hpp"
#include "sluice/sim/scenario.hpp"
#include "sluice/sim/trace.hpp"

namespace sluice::sim {

/// Counts in steps of time. At the end of a step, `unfinished` jobs have come and are not done; of
/// them `waiting` ones have no call under way.
struct Series {
  Span step{0};
  std::vector<std::uint32_t> offered;
  std::vector<std::uint32_t> sent;
  std::vector<std::uint32_t> ok;
  std::vector<std::uint32_t> refused;  ///< calls answered 429
  std::vector<std::uint32_t> waiting;
  std::vector<std::uint32_t> unfinished;
  std::vector<std::uint32_t> store_operations;
};

/// What a judge has found against a run.
struct Objection {
  std::string judge;
  std::string text;
};

/// The busiest window of a limit of the API.
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
  std::vector<double> workers;        ///< each one's share of the successes
  std::vector<Objection> objections;  ///< none: every judge is content
  std::vector<std::string> judges;    ///< that have looked
  std::uint64_t trace = 0;            ///< World::trace()
  Span warm_up{0};                    ///< of the scenario, or what the pilots found
};

/// Something that happens to a job.
struct JobEvent {
  enum class What : std::uint8_t { came, sent, answered, gave_up, lost };
  Span at{0};  ///< since the start
  What what = What::came;
  std::uint32_t worker = 0;
  std::uint64_t job = 0;  ///< unique in its run
  std::uint32_t key = 0;
  int status = 0;  ///< of an answer: of HTTP; 0: the client gave the call up
};

struct RunOptions {
  /// A judge objects unless, so long after the last fault, the goodput is back and the backlog
  /// gone; zero: none looks. run() throws std::invalid_argument if no judge could say so: without a
  /// fault, without time before the first one, or if the run ends sooner.
  Span recovery{0};
  const std::atomic<bool>* stop = nullptr;  ///< ends the run, which throws Stopped
  /// Called now and then with the virtual time and the number of events so far.
  std::function<void(Span, std::uint64_t)> progress{};
  std::function<void(const JobEvent&)> on_event{};  ///< called in the order of time
  TraceObserver observer = nullptr;                 ///< see World::observe()
  void* observed = nullptr;
};

/// What run() throws when it was stopped.
struct Stopped {};

/// Runs a scenario to its end, for an automatic warm-up behind its pilots. Throws
/// std::invalid_argument as validate() and find_warm_up() do.
///
///     sim::Scenario outage;
///     outage.faults = {{.kind = sim::FaultPlan::Kind::store_down, .at = 20s, .length = 10s}};
///     const sim::RunResult result = sim::run(outage);
///     REQUIRE(result.objections.empty());
[[nodiscard]] RunResult run(const Scenario& scenario, const RunOptions& options = {});

}  // namespace sluice::sim
