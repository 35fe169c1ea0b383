// The arithmetic and the printing of the ledger.
#include "bench/redis/ledger.hpp"

#include <algorithm>

namespace sluice::bench {
namespace {

double figure_of(const Sample& sample, Figure figure) {
  switch (figure) {
    case Figure::server_us:
      return sample.server_us;
    case Figure::client_us:
      return sample.client_us;
    case Figure::per_second:
      return sample.per_second;
    case Figure::bytes:
      break;
  }
  return 0;
}

const char* unit_of(Figure figure) {
  switch (figure) {
    case Figure::server_us:
      return "server us";
    case Figure::client_us:
      return "client us";
    case Figure::per_second:
      return "1000/s";
    case Figure::bytes:
      break;
  }
  return "bytes";
}

double shown(double value, Figure figure) {
  return figure == Figure::per_second ? value / 1000 : value;
}

}  // namespace

std::vector<double> Ledger::sorted(const std::string& name, Figure figure) const {
  std::vector<double> values;
  if (const auto found = samples_.find(name); found != samples_.end()) {
    for (const Sample& sample : found->second) values.push_back(figure_of(sample, figure));
  }
  std::ranges::sort(values);
  return values;
}

double Ledger::best(const std::string& name, Figure figure) const {
  if (figure == Figure::bytes) {
    const auto found = bytes_.find(name);
    return found == bytes_.end() ? 0 : found->second;
  }
  const auto values = sorted(name, figure);
  if (values.empty()) return 0;
  return figure == Figure::per_second ? values.back() : values.front();
}

double Ledger::median(const std::string& name, Figure figure) const {
  if (figure == Figure::bytes) return best(name, figure);
  const auto values = sorted(name, figure);
  return values.empty() ? 0 : values[values.size() / 2];
}

std::size_t Ledger::rounds() const {
  std::size_t most = 0;
  for (const auto& [name, samples] : samples_) most = std::max(most, samples.size());
  return most;
}

void Ledger::print(std::FILE* out, const std::vector<Comparison>& comparisons) const {
  std::fprintf(out,
               "\nRatios of the quietest of %zu interleaved rounds, in brackets of the medians\n",
               rounds());
  std::fprintf(out, "%-34s %-9s %9s  %-34s %9s  %s\n", "case", "unit", "best", "against", "best",
               "ratio");
  for (const Comparison& one : comparisons) {
    const double mine = best(one.name, one.figure);
    const double theirs = best(one.baseline, one.figure);
    if (mine == 0 || theirs == 0) continue;
    const double middle = median(one.name, one.figure) / median(one.baseline, one.figure);
    std::fprintf(out, "%-34s %-9s %9.2f  %-34s %9.2f  %.2f [%.2f]\n", one.name.c_str(),
                 unit_of(one.figure), shown(mine, one.figure), one.baseline.c_str(),
                 shown(theirs, one.figure), mine / theirs, middle);
  }
}

}  // namespace sluice::bench
