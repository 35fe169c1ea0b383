#include "sim/study/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

#include "sim/scenario/effects.hpp"

namespace sluice::sim::scenario {

std::string joined(const Texts& texts) { return fmt::format("{}", fmt::join(texts, ", ")); }

void Sweep::check() const {
  std::vector<Scenario> seen;
  for (const Texts& value : values) {
    Scenario now;
    set(now, path, value);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (values[i] != value && parameter(path).differs(seen[i], now)) continue;
      throw std::invalid_argument(path + ": " + joined(values[i]) + " and " + joined(value) +
                                  " are the same value; leave out one");
    }
    seen.push_back(std::move(now));
  }
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

namespace {

Scenario scenario_of(const Study& study, const std::vector<Setting>& settings,
                     const std::vector<FaultPlan>& faults) {
  Scenario result;
  result.seed = study.seed;
  result.faults = faults;
  for (const Setting& setting : settings) set(result, setting.path, setting.texts);
  return result;
}

/// A row without what does nothing in it.
struct EffectiveRow {
  EffectiveRow(const Study& study, std::size_t variant, std::size_t point)
      : settings(study.in_force(variant, point)),
        scenario(scenario_of(study, settings, study.faults)),
        why_faults(study.faults.size()),
        places_(study.faults.size()) {
    std::iota(places_.begin(), places_.end(), std::size_t{0});
    // What goes may be what another one needs.
    while (drop()) scenario = scenario_of(study, settings, scenario.faults);
  }

  std::vector<Setting> settings;
  Scenario scenario;
  // Why what was dropped does nothing; "": it was not.
  std::map<std::string, std::string> why;  // by the paths of settings
  std::vector<std::string> why_faults;     // as those of the study

 private:
  bool drop() {
    const Scenario now = scenario;
    const auto settings_before = settings.size();
    std::erase_if(settings, [&](const Setting& setting) {
      std::string reason = idle(now, setting.path);
      if (reason.empty()) return false;
      why.emplace(setting.path, std::move(reason));
      return true;
    });
    const auto faults_before = scenario.faults.size();
    for (std::size_t i = scenario.faults.size(); i-- > 0;) {
      std::string reason = idle(now, scenario.faults[i]);
      if (reason.empty()) continue;
      why_faults[places_[i]] = std::move(reason);
      scenario.faults.erase(scenario.faults.begin() + static_cast<std::ptrdiff_t>(i));
      places_.erase(places_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return settings.size() != settings_before || scenario.faults.size() != faults_before;
  }

  std::vector<std::size_t> places_;  // of the faults that are left, in the study
};

}  // namespace

std::vector<Setting> Study::in_force(std::size_t variant, std::size_t point) const {
  std::vector<Setting> all = settings;
  const std::vector<Setting>& own = variants[variant].settings;
  all.insert(all.end(), own.begin(), own.end());
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    all.push_back({sweeps[i].path, value(i, point), sweeps[i].where});
  }
  std::vector<Setting> last;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto same = [&](const Setting& later) { return later.path == all[i].path; };
    const auto behind = all.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (std::none_of(behind, all.end(), same)) last.push_back(all[i]);
  }
  return last;
}

Scenario Study::scenario(std::size_t variant, std::size_t point) const {
  Scenario result = EffectiveRow(*this, variant, point).scenario;
  if (result.arrivals.kind == ArrivalOptions::Kind::trace && !result.arrivals.file.empty()) {
    const TraceFile file = traces->read(result.arrivals.file);
    result.arrivals.trace = file.calls;
    result.jobs.keys = file.keys;
  }
  validate(result);
  return result;
}

std::optional<Idle> find_idle(const Study& study,
                              const std::function<bool(const std::string&)>& asked,
                              const std::vector<std::string>& fault_places) {
  struct Candidate {
    Idle idle;  // why it does nothing in the first row; "" once a row uses it
    std::string path;
  };
  std::vector<Candidate> all;
  const auto note = [&](const std::string& where, const std::string& path, const std::string& why) {
    if (where.empty() || !asked(where)) return;
    const auto found = std::ranges::find_if(
        all, [&](const Candidate& each) { return each.idle.where == where && each.path == path; });
    if (found == all.end()) {
      all.push_back({{where, why}, path});
    } else if (why.empty()) {
      found->idle.why.clear();
    }
  };
  for (std::size_t variant = 0; variant < study.variants.size(); ++variant) {
    for (std::size_t point = 0; point < study.points(); ++point) {
      EffectiveRow row(study, variant, point);
      // A fault first: what it needs may be idle because of it.
      for (std::size_t i = 0; i < fault_places.size(); ++i) {
        note(fault_places[i], std::to_string(i), row.why_faults[i]);
      }
      for (const Setting& setting : study.in_force(variant, point)) {
        note(setting.where, setting.path, row.why[setting.path]);
      }
    }
  }
  for (const Candidate& each : all) {
    if (!each.idle.why.empty()) return each.idle;
  }
  return {};
}

void drop_idle(Study& single) {
  const EffectiveRow row(single, 0, 0);
  single.settings = row.settings;
  single.variants.front().settings.clear();
  single.faults = row.scenario.faults;
  if (single.faults.empty()) single.judges.recovery = Span{0};
}

}  // namespace sluice::sim::scenario
