#include "sim/study/study.hpp"

#include <numeric>

namespace sluice::sim::scenario {
namespace {

std::string joined(const Texts& texts) {
  return std::accumulate(texts.begin(), texts.end(), std::string(),
                         [](std::string all, const std::string& text) {
                           return std::move(all) + (all.empty() ? "" : ", ") + text;
                         });
}

}  // namespace

std::string Study::point_text(std::size_t point) const {
  return sweep ? joined(sweep->values[point]) : std::string();
}

std::string Study::row_text(std::size_t variant, std::size_t point) const {
  std::string text;
  const std::string& its_name = variants[variant].name;
  if (!its_name.empty()) text += " (variant \"" + its_name + "\")";
  if (sweep) text += " (" + sweep->path + " = " + point_text(point) + ")";
  return text;
}

Scenario Study::scenario(std::size_t variant, std::size_t point) const {
  Scenario result;
  result.seed = seed;
  result.faults = faults;
  for (const Setting& setting : settings) set(result, setting.path, setting.texts);
  for (const Setting& setting : variants[variant].settings) {
    set(result, setting.path, setting.texts);
  }
  if (sweep) set(result, sweep->path, sweep->values[point]);
  if (result.arrivals.kind == ArrivalOptions::Kind::trace && !result.arrivals.file.empty()) {
    const TraceFile file = traces->read(result.arrivals.file);
    result.arrivals.trace = file.calls;
    result.jobs.keys = file.keys;
  }
  validate(result);
  return result;
}

}  // namespace sluice::sim::scenario
