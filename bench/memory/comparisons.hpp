// The table at the end of a run: each case beside a baseline of the same run, since machines and
// minutes differ.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace sluice::bench {

/// Prints every run as usual, and keeps the times for the table.
class ComparisonReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override;
  /// Prints the table: medians, decisions a second, and the ratio of medians.
  void print_comparisons() const;

 private:
  [[nodiscard]] double median(const std::string& name) const;

  std::map<std::string, std::vector<double>> times_;
  double bytes_per_key_ = 0;
};

}  // namespace sluice::bench
