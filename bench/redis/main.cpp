// Runs the cases in interleaved rounds against a redis-server of its own, and prints the ratios
// of bench/README.md. Google Benchmark's flags apply.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/redis/cases.hpp"

namespace {

using namespace sluice::bench;

/// One line a case and statistic, as many as one can read: the quietest round and the median.
class Brief : public benchmark::ConsoleReporter {
 public:
  Brief() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> kept;
    for (const Run& run : runs) {
      const bool brief = run.aggregate_name == "min" || run.aggregate_name == "median";
      if (run.error_occurred || brief) kept.push_back(run);
    }
    ConsoleReporter::ReportRuns(kept.empty() ? runs : kept);
  }
};

int run(int argc, char** argv) {
  // What stands first can be overruled by the user's flags.
  std::vector<std::string> flags{argv[0], "--benchmark_enable_random_interleaving=true",
                                 "--benchmark_repetitions=21",
                                 "--benchmark_report_aggregates_only=true"};
  flags.insert(flags.end(), argv + 1, argv + argc);
  std::vector<char*> words;
  for (std::string& flag : flags) words.push_back(flag.data());
  int count = static_cast<int>(words.size());
  benchmark::Initialize(&count, words.data());
  if (benchmark::ReportUnrecognizedArguments(count, words.data())) return 1;

  Rig rig;
  std::vector<Comparison> comparisons = register_server_cases(rig);
  for (const Comparison& one : register_lease_cases(rig)) comparisons.push_back(one);
  for (const Comparison& one : register_client_cases(rig)) comparisons.push_back(one);
  for (const Comparison& one : register_window_cases(rig)) comparisons.push_back(one);
  for (const Comparison& one : register_algorithm_cases(rig)) comparisons.push_back(one);
  Brief reporter;
  if (benchmark::RunSpecifiedBenchmarks(&reporter) > 0) rig.ledger().print(stdout, comparisons);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_redis: %s\n", error.what());
    return 1;
  }
}
