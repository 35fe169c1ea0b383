#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/judges/judges.hpp"
#include "sim/scenario/text.hpp"
#include "sim/study/output.hpp"

namespace sluice::sim::scenario {
namespace {

using Json = nlohmann::ordered_json;

constexpr int format = 2;

const char* text_of(Status status) {
  return status == Status::holds ? "holds" : status == Status::fails ? "fails" : "undecided";
}

/// What is not finite becomes null, as in all that follows.
Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

/// `seen`: how long the run goes on behind its last fault.
Json estimate_json(const Estimate& estimate, Span seen) {
  const bool has_interval = estimate.is_known() && estimate.replications > 1;
  Json json = {{"value", estimate.mean},
               {"low", has_interval ? Json(estimate.low) : Json(nullptr)},
               {"high", has_interval ? Json(estimate.high) : Json(nullptr)},
               {"replications", estimate.replications}};
  if (estimate.never != 0) {
    json["never"] = estimate.never;
    json["after_s"] = static_cast<double>(seen.count()) / 1'000'000;
  }
  return json;
}

const char* text_of(MetricInfo::Better better) {
  using Better = MetricInfo::Better;
  return better == Better::less ? "less" : better == Better::more ? "more" : "";
}

Json metrics_json() {
  Json all = Json::object();
  for (const MetricInfo& metric : metrics()) {
    all[std::string(metric.name)] = {{"title", metric.title},
                                     {"unit", metric.unit},
                                     {"least", metric.least},
                                     {"most", metric.most},
                                     {"better", text_of(metric.better)},
                                     {"phrase", metric.phrase},
                                     {"help", metric.help}};
  }
  return all;
}

Json parameters_json(const Study& study) {
  Json all = Json::object();
  for (const Parameter& parameter : parameters()) {
    all[std::string(parameter.path)] = parameter.standard;
  }
  for (const Setting& setting : study.settings) all[setting.path] = joined(setting.texts);
  return all;
}

Json parameter_help_json() {
  Json all = Json::object();
  for (const Parameter& parameter : parameters()) all[std::string(parameter.path)] = parameter.help;
  return all;
}

/// Of the judges that have looked.
Json judge_help_json(const StudyResult& result) {
  Json all = Json::object();
  for (const Judgement& judgement : result.judgements) {
    all[judgement.judge] = judge_help(judgement.judge);
  }
  return all;
}

Json faults_json(const Study& study) {
  Json all = Json::array();
  for (const FaultPlan& fault : study.faults) {
    std::string text(info_of(fault.kind).name);
    std::ranges::replace(text, '_', ' ');
    if (fault.share != 1) text += fmt::format(", share {}", fault.share);
    if (fault.factor != 1) text += fmt::format(", factor {}", fault.factor);
    all.push_back({{"kind", info_of(fault.kind).name},
                   {"from_us", fault.at.count()},
                   {"to_us", fault.end().count()},
                   {"text", text},
                   {"help", info_of(fault.kind).help}});
  }
  return all;
}

Json series_json(const Series& series) {
  return {{"step_us", series.step.count()},
          {"columns",
           {{"offered", series.offered},
            {"admitted", series.sent},
            {"ok", series.ok},
            {"refused", series.refused},
            {"waiting", series.waiting},
            {"unfinished", series.unfinished},
            {"store_operations", series.store_operations}}}};
}

Json row_json(const StudyResult& result, const Row& row) {
  const Study& study = *result.study;
  const Span seen = time_after_faults(study.scenario(row.variant, row.point));
  Json figures = Json::object();
  for (const MetricInfo& info : metrics()) {
    figures[std::string(info.name)] =
        estimate_json(row.estimate(metric(info.name), study.confidence), seen);
  }
  Json quantiles = Json::array();
  for (const auto& [share, wait] : row.first.wait_quantiles) {
    quantiles.push_back({share, wait.count()});
  }
  Json windows = Json::array();
  for (const WorstWindow& window : row.first.windows) {
    windows.push_back(
        {{"limit", window.limit}, {"window_us", window.window.count()}, {"worst", window.worst}});
  }
  Json settings = Json::object();
  for (const Setting& setting : study.variants[row.variant].settings) {
    settings[setting.path] = joined(setting.texts);
  }
  return {
      {"variant", study.variants[row.variant].name},
      {"point", row.point},
      {"parameters", settings},
      {"warmup_us", row.warm_up.count()},
      {"trace", fmt::format("{:x}", row.first.trace)},
      {"figures", figures},
      {"charts_of", {{"replication", 1}, {"of", result.replications}, {"seed", seed_of(study, 0)}}},
      {"series", series_json(row.first.series)},
      {"wait_quantiles", quantiles},
      {"windows", windows},
      {"workers", row.first.workers}};
}

Json verdict_json(const StudyResult& result, const Verdict& verdict) {
  Json json = {{"text", verdict.text},
               {"status", text_of(verdict.status)},
               {"metric", verdict.expectation->metric},
               {"variant", result.study->variants[verdict.variant].name},
               {"point", verdict.point}};
  const Expectation& expectation = *verdict.expectation;
  const Scenario row = result.study->scenario(verdict.variant, verdict.point);
  json.update(estimate_json(verdict.value, time_after_faults(row)));
  json["least"] = optional(expectation.least);
  json["most"] = optional(expectation.most);
  json["equals"] = optional(expectation.equals);
  json["within"] = expectation.within;
  json["of"] = expectation.of;
  return json;
}

/// With several sweeps, each with its values under "axes" as well.
Json sweep_json(const Study& study) {
  if (study.sweeps.empty()) return nullptr;
  Json values = Json::array();
  for (std::size_t i = 0; i < study.points(); ++i) values.push_back(study.point_text(i));
  Texts paths;
  Json axes = Json::array();
  for (const Sweep& sweep : study.sweeps) {
    paths.push_back(sweep.path);
    Json texts = Json::array();
    for (const Texts& value : sweep.values) texts.push_back(joined(value));
    axes.push_back({{"parameter", sweep.path}, {"values", texts}});
  }
  Json json = {{"parameter", joined(paths)}, {"values", values}};
  if (study.sweeps.size() > 1) json["axes"] = axes;
  return json;
}

}  // namespace

std::string to_json(const StudyResult& result, const std::string& command) {
  const Study& study = *result.study;
  const Scenario first = study.scenario(0, 0);
  Json json = {{"format", format},
               {"scenario", study.name},
               {"question", study.question},
               {"description", study.description},
               {"revision", revision()},
               {"command", command},
               {"seed", study.seed},
               {"replications", result.replications},
               {"planned_replications", study.replications},
               {"confidence", study.confidence},
               {"partial", result.partial},
               {"precision", study.precision},
               {"imprecise", result.imprecise},
               {"duration_us", first.duration.count()},
               {"warmup_us", result.rows.front().warm_up.count()},
               {"warmup_rule", study.has_automatic_warm_up() ? Json("MSER-5") : Json(nullptr)},
               {"verdict", text_of(result.status())},
               {"metrics", metrics_json()},
               {"headline", study.headline},
               {"parameters", parameters_json(study)},
               {"parameter_help", parameter_help_json()},
               {"judge_help", judge_help_json(result)},
               {"faults", faults_json(study)},
               {"notes", study.notes},
               {"sweep", sweep_json(study)}};
  json["expectations"] = Json::array();
  for (const Verdict& verdict : result.verdicts) {
    json["expectations"].push_back(verdict_json(result, verdict));
  }
  json["judges"] = Json::array();
  for (const Judgement& judgement : result.judgements) {
    json["judges"].push_back({{"name", judgement.judge},
                              {"variant", study.variants[judgement.variant].name},
                              {"point", judgement.point},
                              {"status", judgement.objects ? "objects" : "holds"},
                              {"text", judgement.text}});
  }
  json["rows"] = Json::array();
  for (const Row& row : result.rows) json["rows"].push_back(row_json(result, row));
  return json.dump() + "\n";
}

std::string_view revision() { return SLUICE_REVISION; }

std::string to_html(const std::string& json, const std::filesystem::path& page) {
  static constexpr std::string_view place = "/*RESULT*/";
  std::ifstream file(page, std::ios::binary);
  std::string html{std::istreambuf_iterator<char>(file), {}};
  const auto at = html.find(place);
  if (!file || at == std::string::npos) {
    throw std::runtime_error(page.string() + ": the page of the report cannot be read");
  }
  std::string safe;
  for (const char letter : json) {  // no text of a scenario can end the script element
    safe += letter == '<' ? std::string("\\u003c") : std::string(1, letter);
  }
  return html.replace(at, place.size(), safe);
}

}  // namespace sluice::sim::scenario
