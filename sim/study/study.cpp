#include "sim/study/study.hpp"

#include <numeric>

namespace sluice::sim::scenario {

std::string joined(const Texts& texts) {
  return std::accumulate(texts.begin(), texts.end(), std::string(),
                         [](std::string all, const std::string& text) {
                           return std::move(all) + (all.empty() ? "" : ", ") + text;
                         });
}

std::size_t Study::points() const noexcept {
  std::size_t count = 1;
  for (const Sweep& sweep : sweeps) count *= sweep.values.size();
  return count;
}

const Texts& Study::value(std::size_t sweep, std::size_t point) const {
  for (std::size_t later = sweeps.size() - 1; later > sweep; --later) {
    point /= sweeps[later].values.size();
  }
  return sweeps[sweep].values[point % sweeps[sweep].values.size()];
}

std::string Study::value_text(std::size_t sweep, std::size_t point) const {
  return joined(value(sweep, point));
}

std::string Study::point_text(std::size_t point) const {
  return sweeps.size() == 1 ? value_text(0, point) : point_name(point);
}

std::string Study::point_name(std::size_t point) const {
  std::string text;
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    text += (text.empty() ? "" : ", ") + sweeps[i].path + " = " + value_text(i, point);
  }
  return text;
}

bool Study::concerns(const Expectation& expectation, std::size_t point) const {
  if (!expectation.at.empty() && expectation.at != point_text(point)) return false;
  for (const Setting& wanted : expectation.at_values) {
    for (std::size_t i = 0; i < sweeps.size(); ++i) {
      if (sweeps[i].path == wanted.path && value(i, point) != wanted.texts) return false;
    }
  }
  return true;
}

std::string Study::row_text(std::size_t variant, std::size_t point) const {
  std::string text;
  const std::string& its_name = variants[variant].name;
  if (!its_name.empty()) text += " (variant \"" + its_name + "\")";
  if (!sweeps.empty()) text += " (" + point_name(point) + ")";
  return text;
}

bool Study::has_automatic_warm_up() const {
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    for (std::size_t point = 0; point < points(); ++point) {
      if (scenario(variant, point).warm_up == auto_warm_up) return true;
    }
  }
  return false;
}

Scenario Study::scenario(std::size_t variant, std::size_t point) const {
  Scenario result;
  result.seed = seed;
  result.faults = faults;
  for (const Setting& setting : settings) set(result, setting.path, setting.texts);
  for (const Setting& setting : variants[variant].settings) {
    set(result, setting.path, setting.texts);
  }
  for (std::size_t i = 0; i < sweeps.size(); ++i) set(result, sweeps[i].path, value(i, point));
  if (result.arrivals.kind == ArrivalOptions::Kind::trace && !result.arrivals.file.empty()) {
    const TraceFile file = traces->read(result.arrivals.file);
    result.arrivals.trace = file.calls;
    result.jobs.keys = file.keys;
  }
  validate(result);
  return result;
}

}  // namespace sluice::sim::scenario
