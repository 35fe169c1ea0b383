// A fleet in four rows under the same arrivals and latencies, and the report of an outage.
#include <fmt/format.h>

#include "cli/text.hpp"
#include "sim/tool/demo.hpp"
#include "sim/tool/study_session.hpp"

namespace sluice::tool {
namespace {

using namespace sim::scenario;

void print_traces(const StudyResult& result) {
  for (const Row& row : result.rows) {
    fmt::print("  {:<12} {} events, trace hash {:016x}\n", result.study->variants[row.variant].name,
               thousands(static_cast<std::uint64_t>(row.figures.front()[sim::Metric::events])),
               row.first.trace);
  }
  fmt::print("seed {}; the same seed gives the same trace hash on every machine and compiler\n\n",
             result.study->seed);
}

}  // namespace

int run_fleets(const DemoOptions& options) {
  SessionOptions session;
  session.scenario = "fleet";
  session.seed = options.seed;
  session.replications = 1;
  session.sets = {fmt::format("run.duration={}min", options.minutes),
                  fmt::format("fleet.workers={}", options.workers)};
  Study study = load(session);
  study.expectations.clear();  // they are for the length of the file
  study.headline = {"share_429", "goodput", "wait_p50", "wait_p99", "ops_per_call"};
  fmt::print("Simulated: {} of {}.\n{}\n", plural(options.minutes, "minute"),
             plural(options.workers, "worker"), study.description);
  std::fflush(stdout);
  const StudyResult result = run_with_progress(study, session);
  report(result, session, "sluice-demo");
  if (result.replications == 0) return exit_code(result);
  print_traces(result);
  return exit_code(result);
}

int run_outage(const DemoOptions& options) {
  SessionOptions session;
  session.scenario = "redis-outage";
  session.replications = 8;
  session.output = options.report;
  Study study = load(session);
  study.sweeps.clear();
  study.expectations.clear();
  study.judges.sometimes.clear();
  fmt::print("An outage, rehearsed. {}\n\n", study.question);
  std::fflush(stdout);
  const StudyResult result = run_with_progress(study, session);
  report(result, session, "sluice-sim run redis-outage");
  return exit_code(result);
}

}  // namespace sluice::tool
