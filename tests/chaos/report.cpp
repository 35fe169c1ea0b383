#include <algorithm>
#include <cstdio>

#include "tests/chaos/fleet.hpp"

namespace sluice::chaos {

std::string text_of(double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer,
                number < 10    ? "%.2f"
                : number < 100 ? "%.1f"
                               : "%.0f",
                number);
  return buffer;
}

void Report::add(Row row) {
  std::printf("%s %s | %s | %s | %s\n", row.held ? "held  " : (row.is_hard ? "BROKEN" : "missed"),
              row.figure.c_str(), row.run.c_str(), row.promise.c_str(), row.measured.c_str());
  std::fflush(stdout);
  rows_.push_back(std::move(row));
}

void Report::at_most(const std::string& figure, const std::string& run, const std::string& what,
                     double measured, double most, const std::string& unit, bool is_hard) {
  add({figure, run, what + ": at most " + text_of(most) + unit, text_of(measured) + unit,
       measured <= most, is_hard});
}

void Report::print() const {
  std::printf("\n| figure | run | promise | measured | held |\n|---|---|---|---|---|\n");
  for (const Row& row : rows_) {
    std::printf("| %s | %s | %s | %s | %s |\n", row.figure.c_str(), row.run.c_str(),
                row.promise.c_str(), row.measured.c_str(), row.held ? "yes" : "no");
  }
}

bool Report::holds(bool strict) const {
  return std::ranges::all_of(rows_,
                             [&](const Row& row) { return row.held || !(row.is_hard || strict); });
}

}  // namespace sluice::chaos
