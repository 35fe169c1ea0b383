#include "bench/comparisons.hpp"

#include <algorithm>

namespace sluice::bench {

void ComparisonReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> shown;
  for (const Run& run : runs) {
    const bool is_only_one = run.repetitions == 1 || run.error_occurred;
    if (is_only_one || run.aggregate_name == "median") shown.push_back(run);
    if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
    const std::string& path = run.run_name.function_name;
    const std::string name = path.substr(path.rfind('/') + 1);
    // Alone, a thread's own time counts, which others' work on the machine does not stretch.
    note(name, "ns", run.threads == 1 ? run.GetAdjustedCPUTime() : run.GetAdjustedRealTime());
    for (const auto& [figure, counter] : run.counters) note(name, figure, counter);
  }
  if (!shown.empty()) ConsoleReporter::ReportRuns(shown);
}

ComparisonReporter::Row ComparisonReporter::row(const std::string& name,
                                                const std::string& figure) const {
  const auto found = figures_.find({name, figure});
  if (found == figures_.end()) return {};
  std::vector<double> sorted = found->second;
  std::ranges::sort(sorted);
  const bool is_rate = figure.ends_with("/s");
  return {is_rate ? sorted.back() : sorted.front(), sorted[sorted.size() / 2]};
}

void ComparisonReporter::print(const std::vector<Comparison>& comparisons) const {
  std::printf(
      "\nThe quietest round, and in brackets the median of all\n%-34s %-9s %20s  %-34s %20s  %s\n",
      "case", "figure", "", "against", "", "ratio");
  for (const auto& [figure, name, baseline] : comparisons) {
    const Row ours = row(name, figure);
    const Row theirs = row(baseline, figure);
    if (ours.best == 0 || theirs.best == 0) continue;
    std::printf("%-34s %-9s %9.2f [%8.2f]  %-34s %9.2f [%8.2f]  %.2f [%.2f]\n", name.c_str(),
                figure.c_str(), ours.best, ours.median, baseline.c_str(), theirs.best,
                theirs.median, ours.best / theirs.best, ours.median / theirs.median);
  }
}

bool read_flags(int argc, char** argv, const std::vector<std::string>& own) {
  std::vector<std::string> flags = own;
  flags.emplace_back("--benchmark_enable_random_interleaving=true");
  std::vector<char*> words{argv[0]};
  for (std::string& flag : flags) words.push_back(flag.data());
  words.insert(words.end(), argv + 1, argv + argc);
  int count = static_cast<int>(words.size());
  benchmark::Initialize(&count, words.data());
  return !benchmark::ReportUnrecognizedArguments(count, words.data());
}

}  // namespace sluice::bench
