// Runs the benchmarks in rounds, and then prints the table of comparisons. Google Benchmark's flags
// apply.
#include "bench/comparisons.hpp"

int main(int argc, char** argv) {
  using namespace sluice::bench;
  if (!read_flags(argc, argv, {"--benchmark_repetitions=9", "--benchmark_min_time=0.05"})) return 1;
  ComparisonReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print({
      {"ns", "allow", "mutex_bucket"},
      {"ns", "allow_drained", "mutex_bucket"},
      {"ns", "allow_fine_clock", "mutex_bucket"},
      {"ns", "allow_own_now", "load_cas"},
      {"ns", "allow_2t", "mutex_bucket_2t"},
      {"ns", "allow_2t", "load_cas_2t"},
      {"ns", "refuse_for_long", "clock_read"},
      {"ns", "refuse_for_short", "clock_read"},
      {"ns", "keys_by_name", "map_uniform"},
      {"ns", "keys_hashed", "map_uniform"},
      {"ns", "keys_bound", "map_uniform"},
      {"ns", "batch_by_name", "map_uniform"},
      {"ns", "batch_hashed", "map_uniform"},
      {"ns", "allow", "allow_fine_clock"},
      {"ns", "mutex_bucket", "clock_read"},
      {"ns", "map_uniform", "memory_miss"},
      {"ns", "keys_by_name", "memory_miss"},
      {"ns", "batch_hashed", "memory_miss"},
  });
}
