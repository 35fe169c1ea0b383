#include <fmt/format.h>

#include <cmath>

#include "sim/study/new_file.hpp"
#include "sim/study/output.hpp"
#include "sim/tool/text.hpp"

namespace sluice::sim::scenario {
namespace {

/// Three digits or so, without a needless ".0".
std::string digits(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 10'000) {
    return (value < 0 ? "-" : "") + tool::thousands(static_cast<std::uint64_t>(std::llround(size)));
  }
  if (size >= 100) return fmt::format("{:.0f}", value);
  if (size >= 1) return fmt::format("{:.3g}", value);
  return fmt::format("{:.2g}", value);
}

std::string row_name(const Study& study, const Row& row) {
  std::string name = study.variants[row.variant].name;
  if (study.sweep) {
    name += fmt::format("{}{} = {}", name.empty() ? "" : ", ", study.sweep->path,
                        study.point_text(row.point));
  }
  return name.empty() ? study.name : name;
}

const char* mark(Status status) {
  switch (status) {
    case Status::holds:
      return "holds     ";
    case Status::fails:
      return "FAILS     ";
    default:
      return "undecided ";
  }
}

/// A field of a CSV file; see RFC 4180.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

}  // namespace

std::string figure_text(const std::optional<Interval>& value, const MetricInfo& metric) {
  if (!value) return "-";
  std::string text = digits(value->mean);
  if (value->half_width > 0) text += " ±" + digits(value->half_width);
  if (!metric.unit.empty()) text += fmt::format(" {}", metric.unit);
  return text;
}

std::string to_text(const StudyResult& result) {
  const Study& study = *result.study;
  std::vector<std::string> header{""};
  for (const std::string& name : study.headline) header.emplace_back(info(metric(name)).title);
  tool::Table table(header);
  for (const Row& row : result.rows) {
    std::vector<std::string> cells{row_name(study, row)};
    for (const std::string& name : study.headline) {
      cells.push_back(
          figure_text(row.interval(metric(name), study.confidence), info(metric(name))));
    }
    table.add(std::move(cells));
  }
  std::string text = fmt::format("{}: {}\n\n{}", study.name, study.question, table.text());
  text += fmt::format("\n{}, {} % intervals, seed {}{}\n\n",
                      tool::plural(result.replications, "replication"), study.confidence * 100,
                      study.seed, result.partial ? "; PARTIAL: it was stopped" : "");
  for (const Verdict& verdict : result.verdicts) {
    MetricInfo what = info(metric(verdict.expectation->metric));
    if (!verdict.expectation->of.empty()) what.unit = "";  // a quotient
    text += fmt::format("{}{}; it is {}\n", mark(verdict.status), verdict.text,
                        figure_text(verdict.value, what));
  }
  for (const Judgement& judgement : result.judgements) {
    const std::string& variant = study.variants[judgement.variant].name;
    if (!judgement.objects) continue;
    text += fmt::format("OBJECTS   {}{}: {}\n", judgement.judge,
                        variant.empty() ? "" : " of '" + variant + "'", judgement.text);
  }
  return text;
}

std::string figures_csv(const StudyResult& result) {
  const Study& study = *result.study;
  std::string text = "variant,point,metric,unit,mean,low,high\n";
  for (const Row& row : result.rows) {
    for (const MetricInfo& each : metrics()) {
      const auto interval = row.interval(metric(each.name), study.confidence);
      if (!interval) continue;
      text += fmt::format("{},{},{},{},{},{},{}\n", field(study.variants[row.variant].name),
                          field(study.point_text(row.point)), each.name, each.unit, interval->mean,
                          interval->low(), interval->high());
    }
  }
  return text;
}

std::string series_csv(const StudyResult& result) {
  const Study& study = *result.study;
  std::string text = "variant,point,time_s,offered,sent,ok,refused,waiting,store_operations\n";
  for (const Row& row : result.rows) {
    const Series& s = row.first.series;
    for (std::size_t i = 0; i < s.offered.size(); ++i) {
      const double time = static_cast<double>(s.step.count()) * static_cast<double>(i) / 1'000'000;
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", field(study.variants[row.variant].name),
                          field(study.point_text(row.point)), time, s.offered[i], s.sent[i],
                          s.ok[i], s.refused[i], s.waiting[i], s.store_operations[i]);
    }
  }
  return text;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  NewFile file(path);
  file.out() << text;
  file.commit();
}

}  // namespace sluice::sim::scenario
