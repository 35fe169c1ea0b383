#include "sim/study/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "cli/text.hpp"
#include "sim/scenario/text.hpp"
#include "sim/study/output.hpp"

namespace sluice::sim::scenario {
namespace {

// Where a sweep of the command line stands.
const std::string command_line = "the command line";

/// Of the replications that have the figure on both sides. What never came on one of them is no
/// pair, and so the difference is not known.
Estimate difference_of(const Row& a, const Row& b, Metric metric, double confidence) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < std::min(a.figures.size(), b.figures.size()); ++i) {
    const double left = a.figures[i][metric];
    const double right = b.figures[i][metric];
    const bool never = std::isinf(left) || std::isinf(right);
    differences.push_back(never ? std::numeric_limits<double>::infinity() : right - left);
  }
  const double most = info(metric).most - info(metric).least;
  return estimate_of(differences, {-most, most}, confidence);
}

}  // namespace

void sweep(Study& study, const std::string& path, const std::vector<Texts>& values) {
  study.sweeps = {Sweep{path, values, command_line}};
  study.sweeps.front().check();
  std::erase_if(study.expectations, [](const Expectation& each) {
    return !each.at.empty() || !each.at_values.empty();
  });
  for (std::size_t variant = 0; variant < study.variants.size(); ++variant) {
    for (std::size_t point = 0; point < study.points(); ++point) {
      (void)study.scenario(variant, point);
    }
  }
  const auto is_swept = [](const std::string& where) { return where == command_line; };
  if (const auto found = find_idle(study, is_swept)) throw std::invalid_argument(found->why);
}

void keep_variant(Study& study, const std::string& name) {
  const auto found = std::ranges::find(study.variants, name, &Variant::name);
  if (found == study.variants.end()) {
    std::vector<std::string_view> names;
    for (const Variant& variant : study.variants) names.emplace_back(variant.name);
    throw std::invalid_argument(fmt::format("{} has no variant \"{}\"{}", study.name, name,
                                            did_you_mean(name, names, "\"")));
  }
  const Variant kept = *found;
  study.variants = {kept};
  std::erase_if(study.expectations, [&](const Expectation& each) {
    const bool of_another = !each.variant.empty() && each.variant != name;
    return of_another || (!each.of.empty() && each.of != name);
  });
}

void check_pair(const Study& a, const Study& b) {
  for (const Study* const study : {&a, &b}) {
    if (study->variants.size() > 1) {
      throw std::invalid_argument(
          fmt::format("{} has {} variants: name one of them behind it, as \":{}\"", study->name,
                      study->variants.size(), study->variants.front().name));
    }
    if (!study->sweeps.empty()) {
      const Sweep& sweep = study->sweeps.front();
      throw std::invalid_argument(
          fmt::format("{} sweeps {}: choose one value for both, as --set {}={}", study->name,
                      sweep.path, sweep.path, study->value_text(0, 0)));
    }
  }
  if (a.seed != b.seed) {
    throw std::invalid_argument(
        fmt::format("{} has seed {}, and {} has {}: choose one for both, as --seed {}", a.name,
                    a.seed, b.name, b.seed, a.seed));
  }
}

std::optional<Span> share_warm_up(Study& a, Study& b) {
  const auto is_automatic = [](const Study& study) {
    return study.scenario(0, 0).warm_up == auto_warm_up;
  };
  if (!is_automatic(a) && !is_automatic(b)) return {};
  const auto of_first_row = [](const Study& study) {
    return single_run(study, 0, 0, 0).scenario(0, 0).warm_up;
  };
  const Span longer = std::max(of_first_row(a), of_first_row(b));
  const Setting setting{"run.warm_up", {fmt::format("{}us", longer.count())}};
  for (Study* const study : {&a, &b}) {
    std::erase_if(study->sweeps, [&](const Sweep& each) { return each.path == setting.path; });
    for (Variant& variant : study->variants) variant.settings.push_back(setting);
  }
  return longer;
}

std::vector<Difference> differences(const StudyResult& a, const StudyResult& b) {
  std::vector<Difference> all;
  for (const std::string& name : a.study->headline) {
    const Metric metric = sim::metric(name);
    const Estimate value =
        difference_of(a.rows.front(), b.rows.front(), metric, a.study->confidence);
    std::string_view verdict = "not known";
    if (value.is_known() && value.replications >= 2) {
      verdict = value.low > 0 ? "higher" : value.high < 0 ? "lower" : "no difference shown";
    }
    all.push_back({metric, value, verdict});
  }
  return all;
}

std::string compare(const StudyResult& a, const StudyResult& b, const std::string& name_a,
                    const std::string& name_b) {
  const double confidence = a.study->confidence;
  tool::Table table({"", name_a, name_b, "difference", ""});
  for (const auto& [metric, value, verdict] : differences(a, b)) {
    const MetricInfo& what = info(metric);
    table.add({std::string(what.title),
               figure_text(a.rows.front().estimate(metric, confidence), what.unit),
               figure_text(b.rows.front().estimate(metric, confidence), what.unit),
               figure_text(value, what.unit), std::string(verdict)});
  }
  return fmt::format("{}\ndifference of {} - {}, replication by replication, {} % intervals{}\n",
                     table.text(), name_b, name_a, confidence * 100,
                     a.partial || b.partial ? "; PARTIAL: it was stopped" : "");
}

}  // namespace sluice::sim::scenario
