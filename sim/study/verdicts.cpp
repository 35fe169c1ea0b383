#include "sim/study/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice::sim::scenario {
namespace {

/// The values of the replications, divided by those of another row if the expectation says so.
std::optional<Interval> value_of(const StudyResult& result, const Expectation& expectation,
                                 const Row& row) {
  const Study& study = *result.study;
  const Metric metric = sim::metric(expectation.metric);
  if (expectation.of.empty()) return row.interval(metric, study.confidence);
  const auto other = std::ranges::find(study.variants, expectation.of, &Variant::name);
  const auto index = static_cast<std::size_t>(other - study.variants.begin());
  Row quotient{row.variant, row.point, {}, row.figures};
  for (std::size_t i = 0; i < row.figures.size(); ++i) {
    quotient.figures[i][metric] /= result.row(index, row.point).figures[i][metric];
    if (!std::isfinite(quotient.figures[i][metric])) quotient.figures[i][metric] = NAN;
  }
  return quotient.interval(metric, study.confidence);
}

Status status_of(const Expectation& expectation, const std::optional<Interval>& value) {
  if (!value) return Status::undecided;
  Status status = Status::holds;
  const auto worsen = [&](bool holds, bool fails) {
    if (fails) status = Status::fails;
    if (!holds && status == Status::holds) status = Status::undecided;
  };
  // A mean of equal numbers may differ from them in its last digits.
  const double rounding = 1e-9 * std::abs(value->mean);
  if (expectation.least) {
    worsen(value->low() >= *expectation.least - rounding,
           value->high() < *expectation.least - rounding);
  }
  if (expectation.most) {
    worsen(value->high() <= *expectation.most + rounding,
           value->low() > *expectation.most + rounding);
  }
  if (expectation.equals) {
    const bool contains = *expectation.equals >= value->low() - expectation.within - rounding &&
                          *expectation.equals <= value->high() + expectation.within + rounding;
    worsen(contains, !contains);
  }
  return status;
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
  const bool known = std::ranges::any_of(result.judgements, [&](const Judgement& judgement) {
    return judgement.judge == objection.judge && judgement.variant == row.variant &&
           judgement.point == row.point;
  });
  if (known) return;
  result.judgements.push_back(
      {objection.judge, row.variant, true, objection.text, replication, row.point});
}

void judge(StudyResult& result) {
  const Study& study = *result.study;
  for (const Row& row : result.rows) {
    for (const std::string& name : row.first.judges) {
      const bool objects = std::ranges::any_of(result.judgements, [&](const Judgement& judgement) {
        return judgement.judge == name && judgement.variant == row.variant;
      });
      if (!objects) result.judgements.push_back({name, row.variant, false, {}, {}, row.point});
    }
  }
  judge_events(result, study.judges.sometimes, true);
  judge_events(result, study.judges.never, false);

  for (const Expectation& expectation : study.expectations) {
    for (const Row& row : result.rows) {
      const std::string& variant = study.variants[row.variant].name;
      if (!expectation.variant.empty() && expectation.variant != variant) continue;
      if (!study.concerns(expectation, row.point)) continue;
      const auto value = value_of(result, expectation, row);
      result.verdicts.push_back({describe(study, expectation, row.variant, row.point),
                                 status_of(expectation, value), &expectation, row.variant,
                                 row.point, value});
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
