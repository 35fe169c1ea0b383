// The targets, each a ratio to a baseline of the same run, since machines and minutes differ.
#include "bench/memory/targets.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace sluice::bench {
namespace {

struct Target {
  const char* what;
  const char* name;
  const char* baseline;
  bool speedup;  // baseline/case, to be large; otherwise case/baseline, to be small
  double must;   // 0: for information
  double aim;
};

constexpr std::array<Target, 18> targets{{
    {"one key, system clock", "allow", "mutex_bucket", false, 0.65, 0.35},
    {"one key, drained each time", "allow_drained", "mutex_bucket", false, 0.65, 0.35},
    {"one key, fine clock only", "allow_fine_clock", "mutex_bucket", false, 0, 0},
    {"one key, caller's now", "allow_own_now", "load_cas", false, 1.67, 1.3},
    {"one key, 2 threads", "allow_2t", "mutex_bucket_2t", true, 2.5, 2.5},
    {"one key, 2 threads", "allow_2t", "load_cas_2t", true, 0, 0.85},
    {"refusal for hours", "refuse_for_long", "clock_read", false, 1.2, 0.4},
    {"refusal for 60 ms", "refuse_for_short", "clock_read", false, 0, 0},
    {"1M keys, by name", "keys_by_name", "map_uniform", true, 3, 5},
    {"1M keys, pre-hashed", "keys_hashed", "map_uniform", true, 6, 6},
    {"1M keys, bound limiters", "keys_bound", "map_uniform", true, 0, 0},
    {"1M keys, batches of 16, by name", "batch_by_name", "map_uniform", true, 0, 0},
    {"1M keys, batches of 16, hashed", "batch_hashed", "map_uniform", true, 12, 12},
    {"coarse clock's gain", "allow", "allow_fine_clock", false, 0, 0},
    {"mutex bucket", "mutex_bucket", "clock_read", false, 0, 0},
    {"map of buckets", "map_uniform", "memory_miss", false, 0, 0},
    {"1M keys, by name", "keys_by_name", "memory_miss", false, 0, 0},
    {"1M keys, batches of 16, hashed", "batch_hashed", "memory_miss", false, 0, 0},
}};

std::string base_name(const std::string& name) { return name.substr(0, name.find('/')); }

const char* id(const Target& target, double ratio) {
  const auto holds = [&](double bound) { return target.speedup ? ratio >= bound : ratio <= bound; };
  if (target.aim != 0 && holds(target.aim)) return "aim";
  if (target.must == 0) return "";
  return holds(target.must) ? "ok" : "MISSED";
}

}  // namespace

void TargetReporter::ReportRuns(const std::vector<Run>& runs) {
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

double TargetReporter::median(const std::string& name) const {
  const auto found = times_.find(name);
  if (found == times_.end()) return 0;
  std::vector<double> sorted = found->second;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

void TargetReporter::print_targets() const {
  std::printf("\n%-34s %9s  %-18s %9s  %7s  %7s  %7s\n", "case", "ns", "against", "ns", "ratio",
              "must", "aim");
  for (const Target& target : targets) {
    const double ours = median(target.name);
    const double theirs = median(target.baseline);
    if (ours == 0 || theirs == 0) continue;
    const double ratio = target.speedup ? theirs / ours : ours / theirs;
    std::printf("%-34s %9.1f  %-18s %9.1f  %6.2fx", target.what, ours, target.baseline, theirs,
                ratio);
    const char* const bound = target.speedup ? ">=" : "<=";
    if (target.must != 0) {
      std::printf("  %s%5.2f", bound, target.must);
    } else {
      std::printf("  %7s", "");
    }
    if (target.aim != 0) {
      std::printf("  %s%5.2f", bound, target.aim);
    } else {
      std::printf("  %7s", "");
    }
    std::printf("  %s\n", id(target, ratio));
  }
  if (bytes_per_key_ != 0) {
    std::printf("%-34s %9.1f  %-46s<=64.00  <=32.00  %s\n", "bytes per idle key", bytes_per_key_,
                "",
                bytes_per_key_ <= 32   ? "aim"
                : bytes_per_key_ <= 64 ? "ok"
                                       : "MISSED");
  }
}

}  // namespace sluice::bench
