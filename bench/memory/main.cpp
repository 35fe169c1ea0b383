// Runs the benchmarks in rounds, one case after the other in random order, so that a slow minute of
// the machine hits all alike; then prints the table of comparisons. Flags are Google Benchmark's.
#include "bench/memory/comparisons.hpp"

int main(int argc, char** argv) {
  std::vector<std::string> arguments{argv[0], "--benchmark_enable_random_interleaving=true",
                                     "--benchmark_repetitions=9", "--benchmark_min_time=0.05"};
  arguments.insert(arguments.end(), argv + 1, argv + argc);  // the caller's come last and win
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 1;
  sluice::bench::ComparisonReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print_comparisons();
}
