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

const char* verdict_of(const Claim& claim, double ratio) {
  if (claim.must == 0) return "";
  const bool rate = claim.figure == Figure::per_second;
  const auto reaches = [&](double target) { return rate ? ratio >= target : ratio <= target; };
  if (claim.aim != 0 && reaches(claim.aim)) return "aim";
  return reaches(claim.must) ? "reached" : "MISSED";
}

std::string target(double value, Figure figure) {
  if (value == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%s %.2f", figure == Figure::per_second ? ">=" : "<=", value);
  return text;
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

void Ledger::print(std::FILE* out, const std::vector<Claim>& claims) const {
  std::fprintf(out,
               "\nRatios of the quietest of %zu interleaved rounds, in brackets of the medians\n",
               rounds());
  std::fprintf(out, "%-34s %-9s %9s  %-34s %9s  %-15s %-8s %-8s %s\n", "case", "unit", "best",
               "against", "best", "ratio", "must", "aim", "verdict");
  for (const Claim& claim : claims) {
    const double mine = best(claim.name, claim.figure);
    const double theirs = best(claim.baseline, claim.figure);
    if (mine == 0 || theirs == 0) continue;
    const double ratio = mine / theirs;
    const double middle = median(claim.name, claim.figure) / median(claim.baseline, claim.figure);
    char ratios[32];
    std::snprintf(ratios, sizeof ratios, "%.2f [%.2f]", ratio, middle);
    std::fprintf(out, "%-34s %-9s %9.2f  %-34s %9.2f  %-15s %-8s %-8s %s\n", claim.name.c_str(),
                 unit_of(claim.figure), shown(mine, claim.figure), claim.baseline.c_str(),
                 shown(theirs, claim.figure), ratios, target(claim.must, claim.figure).c_str(),
                 target(claim.aim, claim.figure).c_str(), verdict_of(claim, ratio));
  }
}

}  // namespace sluice::bench
