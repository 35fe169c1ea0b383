// Runs the cases in interleaved rounds against a redis-server of its own, and prints the ratios
// of bench/README.md. Google Benchmark's flags apply.
#include <cstdio>
#include <exception>
#include <vector>

#include "bench/redis/cases.hpp"

namespace {

using namespace sluice::bench;

int run(int argc, char** argv) {
  if (!read_flags(argc, argv, {"--benchmark_repetitions=21"})) return 1;
  Rig rig;
  std::vector<Comparison> comparisons;
  for (auto* const add : {register_server_cases, register_lease_cases, register_client_cases,
                          register_window_cases, register_algorithm_cases}) {
    for (const Comparison& one : add(rig)) comparisons.push_back(one);
  }
  if (benchmark::RunSpecifiedBenchmarks(&rig.reporter()) > 0) rig.reporter().print(comparisons);
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
