#include <fmt/format.h>

#include <cmath>

#include "cli/text.hpp"
#include "sim/study/new_file.hpp"
#include "sim/study/output.hpp"

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
  if (!study.sweeps.empty()) name += (name.empty() ? "" : ", ") + study.point_name(row.point);
  return name.empty() ? study.name : name;
}

const char* mark(Status status) {
  return status == Status::holds   ? "holds     "
         : status == Status::fails ? "FAILS     "
                                   : "undecided ";
}

/// " of 6 points (2 of arrivals.load x 3 of jobs.keys)".
std::string grid_text(const Study& study) {
  if (study.sweeps.size() < 2) return {};
  std::string text;
  for (const Sweep& sweep : study.sweeps) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : " x ", sweep.values.size(), sweep.path);
  }
  return fmt::format(" of {} points ({})", study.points(), text);
}

/// The row of an objection: " of 'a' at arrivals.load = 2". What never happened did so in no row.
std::string place_of(const Study& study, const Judgement& judgement) {
  if (!judgement.replication) return {};
  const std::string& variant = study.variants[judgement.variant].name;
  std::string text = variant.empty() ? std::string() : " of '" + variant + "'";
  if (!study.sweeps.empty()) text += " at " + study.point_name(judgement.point);
  return text;
}

/// A field of a CSV file; see RFC 4180.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

std::string number_field(double value, bool is_known) {
  return is_known ? fmt::format("{}", value) : std::string();
}

/// The columns of a point: its value, or one for each of several sweeps.
std::string point_header(const Study& study) {
  if (study.sweeps.size() < 2) return "point";
  std::string text;
  for (const Sweep& sweep : study.sweeps) text += (text.empty() ? "" : ",") + field(sweep.path);
  return text;
}
std::string point_fields(const Study& study, std::size_t point) {
  if (study.sweeps.size() < 2) return field(study.point_text(point));
  std::string text;
  for (std::size_t i = 0; i < study.sweeps.size(); ++i) {
    text += (i == 0 ? "" : ",") + field(study.value_text(i, point));
  }
  return text;
}

}  // namespace

std::string figure_text(const Estimate& value, std::string_view unit) {
  if (value.never != 0) return fmt::format("not in {} of {} runs", value.never, value.of);
  if (!value.is_known()) return "-";
  std::string text = digits(value.mean);
  // A mean of equal values may differ from them in its last digits.
  const double slack = 1e-9 * std::abs(value.mean);
  const bool is_whole = value.low <= value.mean - value.half_width + slack &&
                        value.high >= value.mean + value.half_width - slack;
  if (!is_whole) text += fmt::format(" ({} to {})", digits(value.low), digits(value.high));
  if (is_whole && value.half_width > 0) text += " ±" + digits(value.half_width);
  if (!unit.empty()) text += fmt::format(" {}", unit);
  if (value.replications != 1) return text;
  return text + (value.of == 1 ? " (1 run)" : fmt::format(" (1 of {} runs)", value.of));
}

std::string to_text(const StudyResult& result) {
  const Study& study = *result.study;
  std::vector<std::string> header{""};
  for (const std::string& name : study.headline) header.emplace_back(info(metric(name)).title);
  const bool shows_warm_up = study.has_automatic_warm_up();
  if (shows_warm_up) header.emplace_back("warm-up (MSER-5)");
  tool::Table table(header);
  for (const Row& row : result.rows) {
    std::vector<std::string> cells{row_name(study, row)};
    for (const std::string& name : study.headline) {
      cells.push_back(
          figure_text(row.estimate(metric(name), study.confidence), info(metric(name)).unit));
    }
    if (shows_warm_up) cells.push_back(tool::duration(row.warm_up));
    table.add(std::move(cells));
  }
  std::string text = fmt::format("{}: {}\n\n{}", study.name, study.question, table.text());
  const std::string intervals = result.replications == 1
                                    ? std::string("without intervals")
                                    : fmt::format("{} % intervals", study.confidence * 100);
  text += fmt::format("\n{}{}, {}, seed {}{}\n\n", tool::plural(result.replications, "replication"),
                      grid_text(study), intervals, study.seed,
                      result.partial ? "; PARTIAL: it was stopped" : "");
  if (result.imprecise) {
    text += fmt::format("undecided {} is not known within {} % in every row\n",
                        info(metric(study.headline.front())).title, study.precision * 100);
  }
  for (const Verdict& verdict : result.verdicts) {
    const bool is_quotient = !verdict.expectation->of.empty();
    const std::string_view unit = info(metric(verdict.expectation->metric)).unit;
    text += fmt::format("{}{}; it is {}\n", mark(verdict.status), verdict.text,
                        figure_text(verdict.value, is_quotient ? "" : unit));
  }
  for (const Judgement& judgement : result.judgements) {
    if (!judgement.objects) continue;
    text += fmt::format("OBJECTS   {}{}: {}\n", judgement.judge, place_of(study, judgement),
                        judgement.text);
  }
  return text;
}

std::string figures_csv(const StudyResult& result) {
  const Study& study = *result.study;
  std::string text =
      "variant," + point_header(study) + ",metric,unit,mean,low,high,replications,never\n";
  for (const Row& row : result.rows) {
    for (const MetricInfo& each : metrics()) {
      const Estimate value = row.estimate(metric(each.name), study.confidence);
      if (value.replications == 0 && value.never == 0) continue;
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", field(study.variants[row.variant].name),
                          point_fields(study, row.point), each.name, each.unit,
                          number_field(value.mean, value.is_known()),
                          number_field(value.low, value.is_known() && value.replications > 1),
                          number_field(value.high, value.is_known() && value.replications > 1),
                          value.replications, value.never);
    }
  }
  return text;
}

std::string series_csv(const StudyResult& result) {
  const Study& study = *result.study;
  std::string text = "variant," + point_header(study) +
                     ",time_s,offered,sent,ok,refused,waiting,unfinished,store_operations\n";
  for (const Row& row : result.rows) {
    const Series& s = row.first.series;
    for (std::size_t i = 0; i < s.offered.size(); ++i) {
      const double time = static_cast<double>(s.step.count()) * static_cast<double>(i) / 1'000'000;
      text +=
          fmt::format("{},{},{},{},{},{},{},{},{},{}\n", field(study.variants[row.variant].name),
                      point_fields(study, row.point), time, s.offered[i], s.sent[i], s.ok[i],
                      s.refused[i], s.waiting[i], s.unfinished[i], s.store_operations[i]);
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
