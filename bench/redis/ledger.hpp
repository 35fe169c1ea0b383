// What the rounds measured, and the page of ratios made from it. One round of one case is one
// sample; a case is judged by its quietest round, since noise of a shared machine only adds.
// Threading: the benchmark's main thread.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace sluice::bench {

struct Sample {
  double server_us = 0;   // the server's own count for one EVALSHA or FCALL
  double client_us = 0;   // CPU of this process for one decision
  double per_second = 0;  // decisions, by the wall clock
};

enum class Figure { server_us, client_us, per_second, bytes };

/// A case and the baseline that its figure is divided by.
struct Comparison {
  Figure figure;
  std::string name;
  std::string baseline;
};

class Ledger {
 public:
  void add(const std::string& name, const Sample& sample) { samples_[name].push_back(sample); }
  void set_bytes(const std::string& name, double bytes) { bytes_[name] = bytes; }

  /// The quietest round: the smallest time or the highest rate. Zero if the case did not run.
  [[nodiscard]] double best(const std::string& name, Figure figure) const;
  [[nodiscard]] double median(const std::string& name, Figure figure) const;
  [[nodiscard]] std::size_t rounds() const;

  /// Prints each comparison of which both sides were measured.
  void print(std::FILE* out, const std::vector<Comparison>& comparisons) const;

 private:
  [[nodiscard]] std::vector<double> sorted(const std::string& name, Figure figure) const;

  std::map<std::string, std::vector<Sample>> samples_;
  std::map<std::string, double> bytes_;
};

}  // namespace sluice::bench
