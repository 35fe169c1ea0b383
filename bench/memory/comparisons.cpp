#include "bench/memory/comparisons.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace sluice::bench {
namespace {

struct Comparison {
  const char* what;
  const char* name;
  const char* baseline;
};

constexpr std::array<Comparison, 18> comparisons{{
    {"one key, system clock", "allow", "mutex_bucket"},
    {"one key, drained each time", "allow_drained", "mutex_bucket"},
    {"one key, fine clock only", "allow_fine_clock", "mutex_bucket"},
    {"one key, caller's now", "allow_own_now", "load_cas"},
    {"one key, 2 threads", "allow_2t", "mutex_bucket_2t"},
    {"one key, 2 threads", "allow_2t", "load_cas_2t"},
    {"refusal for hours", "refuse_for_long", "clock_read"},
    {"refusal for 60 ms", "refuse_for_short", "clock_read"},
    {"1M keys, by name", "keys_by_name", "map_uniform"},
    {"1M keys, pre-hashed", "keys_hashed", "map_uniform"},
    {"1M keys, bound limiters", "keys_bound", "map_uniform"},
    {"1M keys, batches of 16, by name", "batch_by_name", "map_uniform"},
    {"1M keys, batches of 16, hashed", "batch_hashed", "map_uniform"},
    {"coarse clock's gain", "allow", "allow_fine_clock"},
    {"mutex bucket", "mutex_bucket", "clock_read"},
    {"map of buckets", "map_uniform", "memory_miss"},
    {"1M keys, by name", "keys_by_name", "memory_miss"},
    {"1M keys, batches of 16, hashed", "batch_hashed", "memory_miss"},
}};

std::string base_name(const std::string& name) { return name.substr(0, name.find('/')); }

}  // namespace

void ComparisonReporter::ReportRuns(const std::vector<Run>& runs) {
  ConsoleReporter::ReportRuns(runs);
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
    // Alone, a thread's own time counts, which others' work on the machine does not stretch.
    times_[base_name(run.run_name.function_name)].push_back(
        run.threads == 1 ? run.GetAdjustedCPUTime() : run.GetAdjustedRealTime());
    if (const auto found = run.counters.find("bytes_per_key"); found != run.counters.end()) {
      bytes_per_key_ = found->second;
    }
  }
}

double ComparisonReporter::median(const std::string& name) const {
  const auto found = times_.find(name);
  if (found == times_.end()) return 0;
  std::vector<double> sorted = found->second;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

void ComparisonReporter::print_comparisons() const {
  std::printf("\n%-34s %9s %9s  %-18s %9s  %7s\n", "case", "ns", "million/s", "against", "ns",
              "ratio");
  for (const Comparison& one : comparisons) {
    const double ours = median(one.name);
    const double theirs = median(one.baseline);
    if (ours == 0 || theirs == 0) continue;
    std::printf("%-34s %9.1f %9.1f  %-18s %9.1f  %7.2f\n", one.what, ours, 1000 / ours,
                one.baseline, theirs, ours / theirs);
  }
  if (bytes_per_key_ != 0) std::printf("%-34s %9.1f\n", "bytes per idle key", bytes_per_key_);
}

}  // namespace sluice::bench
