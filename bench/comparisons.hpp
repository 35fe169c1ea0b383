// The table at the end of a run: each case beside a baseline of the same run, since machines and
// minutes differ. Threading: the benchmark's main thread.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace sluice::bench {

/// A case and the baseline that its figure is divided by. Names are those of benchmarks behind
/// their last "/".
struct Comparison {
  std::string figure;  ///< a counter that both have, or "ns": the time of an iteration
  std::string name;
  std::string baseline;
};

/// Prints the median of each case, and keeps the figures of all rounds for the table.
class ComparisonReporter final : public benchmark::ConsoleReporter {
 public:
  ComparisonReporter() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override;
  /// Notes a figure that no benchmark measures.
  void note(const std::string& name, const std::string& figure, double value) {
    figures_[{name, figure}].push_back(value);
  }
  /// Prints each comparison of which both sides were measured.
  void print(const std::vector<Comparison>& comparisons) const;

 private:
  struct Row {
    double best;    ///< the quietest round, since noise of a shared machine only adds
    double median;  ///< of the rounds; both are 0 if there were none
  };
  [[nodiscard]] Row row(const std::string& name, const std::string& figure) const;

  std::map<std::pair<std::string, std::string>, std::vector<double>> figures_;
};

/// Hands the program's flags to Google Benchmark: rounds in random order, so that a slow minute of
/// the machine hits all cases alike, then `own`, then the user's, which win. False: one of them is
/// unknown.
[[nodiscard]] bool read_flags(int argc, char** argv, const std::vector<std::string>& own);

}  // namespace sluice::bench
