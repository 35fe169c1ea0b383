#include "sim/study/figures_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>

#include "sim/study/output.hpp"

namespace sluice::sim::scenario {
namespace {

/// For each row, the trace of its first replication, which covers every event, and its headline.
std::string figures_of(const StudyResult& result) {
  const Study& study = *result.study;
  const bool automatic = study.has_automatic_warm_up();
  std::string text;
  for (const Row& row : result.rows) {
    std::string name = study.variants[row.variant].name;
    if (!study.sweeps.empty()) name += fmt::format("@{}", study.point_text(row.point));
    text += fmt::format("{} | trace | {:016x}\n", name, row.first.trace);
    if (automatic) text += fmt::format("{} | warm_up | {}us\n", name, row.warm_up.count());
    for (const std::string& each : study.headline) {
      const Estimate value = row.estimate(metric(each), study.confidence);
      if (value.never != 0) {
        text += fmt::format("{} | {} | not in {} of {}\n", name, each, value.never, value.of);
      }
      if (!value.is_known()) continue;
      text += fmt::format("{} | {} | {:.6g} | {:.6g}\n", name, each, value.mean, value.half_width);
    }
  }
  return text;
}

}  // namespace

void write_figures(const StudyResult& result, const std::filesystem::path& file) {
  write_file(file, figures_of(result));
}

std::string changed(const StudyResult& result, const std::filesystem::path& file,
                    Compared compared) {
  const auto counts = [compared](const std::string& line) {
    return compared == Compared::all || line.find(" | trace | ") != std::string::npos;
  };
  std::ifstream in(file);
  if (!in)
    return fmt::format("{}: it is not there; sluice-sim check --update writes it\n", file.string());
  std::multiset<std::string> before;
  for (std::string line; std::getline(in, line);) {
    if (counts(line)) before.insert(line);
  }
  std::string text;
  std::istringstream now(figures_of(result));
  for (std::string line; std::getline(now, line);) {
    const auto found = before.find(line);
    if (!counts(line)) continue;
    if (found == before.end()) {
      text += "now:    " + line + "\n";
    } else {
      before.erase(found);
    }
  }
  for (const std::string& line : before) text += "before: " + line + "\n";
  return text;
}

}  // namespace sluice::sim::scenario
