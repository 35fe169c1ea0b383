#include "sim/study/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/judges/judges.hpp"

namespace sluice::sim::scenario {
namespace {

/// The values of the replications, divided by those of another row if the expectation says so.
std::vector<double> values_of(const StudyResult& result, const Expectation& expectation,
                              const Row& row) {
  const Study& study = *result.study;
  const Metric metric = sim::metric(expectation.metric);
  std::vector<double> values;
  for (const Figures& each : row.figures) values.push_back(each[metric]);
  if (expectation.of.empty()) return values;
  const auto other = std::ranges::find(study.variants, expectation.of, &Variant::name);
  const auto index = static_cast<std::size_t>(other - study.variants.begin());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double divisor = result.row(index, row.point).figures[i][metric];
    // Twice the time of what never came is not known, nor is a quotient by 0.
    const bool is_known = std::isfinite(divisor) && divisor != 0;
    values[i] = is_known ? values[i] / divisor : NAN;
  }
  return values;
}

/// Whether all that is known of a figure lies within. `at_least`: what is known of it from below.
Status status_of(const Expectation& expectation, const Estimate& value, const Estimate& at_least) {
  if (value.replications == 0 && value.never == 0) return Status::undecided;
  Status status = Status::holds;
  const auto worsen = [&](bool holds, bool fails) {
    if (fails) status = Status::fails;
    if (!holds && status == Status::holds) status = Status::undecided;
  };
  // A mean of equal numbers may differ from them in its last digits.
  const auto rounding = [](const Estimate& of) { return 1e-9 * std::abs(of.mean); };
  if (!value.is_known()) {  // it never came, in some run
    if (expectation.least) worsen(at_least.low >= *expectation.least - rounding(at_least), false);
    if (expectation.most || expectation.equals) worsen(false, true);
    return status;
  }
  const double slack = rounding(value);
  if (expectation.least) {
    worsen(value.low >= *expectation.least - slack, value.high < *expectation.least - slack);
  }
  if (expectation.most) {
    worsen(value.high <= *expectation.most + slack, value.low > *expectation.most + slack);
  }
  if (expectation.equals) {
    const bool contains = *expectation.equals >= value.low - expectation.within - slack &&
                          *expectation.equals <= value.high + expectation.within + slack;
    worsen(contains, !contains);
  }
  return status;
}

Verdict verdict_of(const StudyResult& result, const Expectation& expectation, const Row& row) {
  const Study& study = *result.study;
  const MetricInfo& what = info(metric(expectation.metric));
  const bool is_quotient = !expectation.of.empty();
  const double any = std::numeric_limits<double>::infinity();
  const Range possible =
      is_quotient ? Range{what.least < 0 ? -any : 0, any} : Range{what.least, what.most};
  std::vector<double> values = values_of(result, expectation, row);
  const Estimate value = estimate_of(values, possible, study.confidence);
  Estimate at_least = value;
  if (value.never != 0 && !is_quotient) {
    // What had not come when the run ended took longer than what was seen of it.
    const Span seen = time_after_faults(study.scenario(row.variant, row.point));
    for (double& each : values) {
      if (std::isinf(each)) each = static_cast<double>(seen.count()) / 1'000'000;
    }
    at_least = estimate_of(values, possible, study.confidence);
  }
  return {describe(study, expectation, row.variant, row.point),
          status_of(expectation, value, at_least),
          &expectation,
          row.variant,
          row.point,
          value};
}

bool has_judgement(const StudyResult& result, const Row& row, const std::string& judge) {
  return std::ranges::any_of(result.judgements, [&](const Judgement& each) {
    return each.judge == judge && each.variant == row.variant && each.point == row.point;
  });
}

/// Judges that need all replications: what must happen in some, or in none.
void judge_events(StudyResult& result, const std::vector<std::string>& names, bool wanted) {
  for (const std::string& name : names) {
    const Metric metric = sim::metric(name);
    Judgement judgement{wanted ? "sometimes" : "never", 0, wanted, {}, {}, 0};
    judgement.text = fmt::format("{}: {}", info(metric).title,
                                 wanted ? "it never happened" : "it did not happen");
    for (const Row& row : result.rows) {
      for (std::size_t i = 0; i < row.figures.size(); ++i) {
        if (!(row.figures[i][metric] > 0) || judgement.objects != wanted) continue;
        judgement = {judgement.judge, row.variant, !wanted, {}, i, row.point};
        judgement.text = fmt::format("{}: it happened", info(metric).title);
      }
    }
    result.judgements.push_back(std::move(judgement));
  }
}

}  // namespace

void note_objection(StudyResult& result, const Row& row, std::size_t replication,
                    const Objection& objection) {
  if (has_judgement(result, row, objection.judge)) return;
  result.judgements.push_back(
      {objection.judge, row.variant, true, objection.text, replication, row.point});
}

void judge(StudyResult& result) {
  const Study& study = *result.study;
  for (const Row& row : result.rows) {
    for (const std::string& name : row.first.judges) {
      if (!has_judgement(result, row, name))
        result.judgements.push_back({name, row.variant, false, {}, {}, row.point});
    }
  }
  judge_events(result, study.judges.sometimes, true);
  judge_events(result, study.judges.never, false);

  for (const Expectation& expectation : study.expectations) {
    for (const Row& row : result.rows) {
      const std::string& variant = study.variants[row.variant].name;
      if (!expectation.variant.empty() && expectation.variant != variant) continue;
      if (!study.concerns(expectation, row.point)) continue;
      result.verdicts.push_back(verdict_of(result, expectation, row));
    }
  }
}

std::string describe(const Study& study, const Expectation& expectation, std::size_t variant,
                     std::size_t point) {
  const MetricInfo& what = info(metric(expectation.metric));
  std::string text(what.title);
  if (!study.variants[variant].name.empty())
    text += fmt::format(" of '{}'", study.variants[variant].name);
  if (!study.sweeps.empty()) text += " at " + study.point_name(point);
  text += ":";
  const bool is_ratio = !expectation.of.empty();
  const std::string unit = is_ratio            ? fmt::format(" times that of '{}'", expectation.of)
                           : what.unit.empty() ? std::string()
                                               : fmt::format(" {}", what.unit);
  if (expectation.least) text += fmt::format(" at least {}{}", *expectation.least, unit);
  if (expectation.least && expectation.most) text += " and";
  if (expectation.most) text += fmt::format(" at most {}{}", *expectation.most, unit);
  if (expectation.equals) text += fmt::format(" {}{}", *expectation.equals, unit);
  if (expectation.within != 0) text += fmt::format(" within {}{}", expectation.within, unit);
  return text;
}

Status StudyResult::status() const {
  Status worst = Status::holds;
  if (partial || imprecise) worst = Status::undecided;
  for (const Verdict& verdict : verdicts) {
    if (verdict.status == Status::fails) return Status::fails;
    if (verdict.status == Status::undecided) worst = Status::undecided;
  }
  const bool objects =
      std::ranges::any_of(judgements, [](const Judgement& each) { return each.objects; });
  return objects ? Status::fails : worst;
}

}  // namespace sluice::sim::scenario
