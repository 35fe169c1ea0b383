#include "sim/study/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/scenario/text.hpp"
#include "sim/study/output.hpp"
#include "sim/tool/text.hpp"

namespace sluice::sim::scenario {

void sweep(Study& study, const std::string& path, const std::vector<Texts>& values) {
  study.sweeps = {Sweep{path, values}};
  std::erase_if(study.expectations, [](const Expectation& each) {
    return !each.at.empty() || !each.at_values.empty();
  });
  for (std::size_t variant = 0; variant < study.variants.size(); ++variant) {
    for (std::size_t point = 0; point < study.points(); ++point) {
      (void)study.scenario(variant, point);
    }
  }
}

void keep_variant(Study& study, const std::string& name) {
  const auto found = std::ranges::find(study.variants, name, &Variant::name);
  if (found == study.variants.end()) {
    std::vector<std::string_view> names;
    for (const Variant& variant : study.variants) names.emplace_back(variant.name);
    const std::string_view near = nearest(name, names);
    throw std::invalid_argument(
        fmt::format("{} has no variant \"{}\"{}", study.name, name,
                    near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
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

std::string compare(const StudyResult& a, const StudyResult& b, const std::string& name_a,
                    const std::string& name_b) {
  const double confidence = a.study->confidence;
  const Row& first = a.rows.front();
  const Row& second = b.rows.front();
  tool::Table table({"", name_a, name_b, "difference", ""});
  for (const std::string& name : a.study->headline) {
    const Metric metric = sim::metric(name);
    std::vector<double> left;
    std::vector<double> right;
    for (std::size_t i = 0; i < std::min(a.replications, b.replications); ++i) {
      if (std::isnan(first.figures[i][metric]) || std::isnan(second.figures[i][metric])) continue;
      left.push_back(first.figures[i][metric]);
      right.push_back(second.figures[i][metric]);
    }
    std::optional<Interval> difference;
    if (left.size() >= 2) difference = paired_interval(right, left, confidence);
    const char* verdict = "not known";
    if (difference) {
      verdict = difference->low() > 0    ? "higher"
                : difference->high() < 0 ? "lower"
                                         : "no difference shown";
    }
    table.add({std::string(info(metric).title),
               figure_text(first.interval(metric, confidence), info(metric)),
               figure_text(second.interval(metric, confidence), info(metric)),
               figure_text(difference, info(metric)), verdict});
  }
  return fmt::format("{}\ndifference of {} - {}, replication by replication, {} % intervals{}\n",
                     table.text(), name_b, name_a, confidence * 100,
                     a.partial || b.partial ? "; PARTIAL: it was stopped" : "");
}

}  // namespace sluice::sim::scenario
