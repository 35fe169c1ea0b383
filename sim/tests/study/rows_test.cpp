// Model of what is said of the rows of a grid: verdicts, judgements, and what the files and the
// text tell of them, of random results that no run has. Threading: single-threaded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/text.hpp"
#include "sim/judges/judges.hpp"
#include "sim/study/figures_file.hpp"
#include "sim/study/output.hpp"
#include "sim/study/study_run.hpp"
#include "sim/study/verdicts.hpp"
#include "sim/tests/help.hpp"
#include "sim/tests/study/textbook.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using nlohmann::json;
using test::asked_of;
using test::expected_status;
using test::infinite;

namespace {

using Kind = FaultPlan::Kind;
using Lines = std::vector<std::string>;

constexpr const char* judge_pool[] = {order_judge, time_judge, hints_judge};

std::vector<std::uint32_t> random_counts(test::Random& random, std::size_t count) {
  std::vector<std::uint32_t> all(count);
  for (std::uint32_t& each : all) each = static_cast<std::uint32_t>(random.between(0, 999));
  return all;
}

/// A grid of random figures, judged.
struct Grid {
  Study study;
  StudyResult result;
  std::vector<Judgement> noted;  ///< what judges object to, the first of each row
  bool has_warm_up = false;      ///< by pilots, of some row

  explicit Grid(test::Random& random) {
    study.name = "grid";
    study.question = "What is said?";
    study.settings = {{"run.duration", {"60s"}}, {"client.timeout", {"1s"}}};
    study.faults = {
        {.kind = Kind::upstream_down, .at = 10s, .length = Span{random.between(1, 20'000'000)}},
        {.kind = Kind::upstream_slow, .at = 5s, .length = 1s, .factor = 2.5},
        {.kind = Kind::network_loss, .at = 5s, .length = 1s, .share = 0.5, .factor = 0.25}};
    study.seed = random.below(1000);
    study.notes = {"one", "two"};
    study.confidence = random.one_in(2) ? 0.99 : 0.95;
    study.headline.clear();
    for (const Metric metric : asked_of) study.headline.emplace_back(info(metric).name);
    make_rows(random);
    for (Word count = random.between(0, 8); count > 0; --count) expect(random);
    if (random.one_in(4)) study.judges.sometimes = {"crashes", "orphaned"};
    if (random.one_in(4)) study.judges.never = {"orphaned", "crashes"};
    study.replications = result.replications + random.below(3);
    study.precision = random.one_in(2) ? 0.025 : 0;
    result.partial = random.one_in(8);
    result.imprecise = random.one_in(8);
    if (random.one_in(2)) object(random);
    judge(result);
  }

  /// In seconds.
  [[nodiscard]] double remain(std::size_t variant) const {
    const Span duration = study.variants[variant].name.starts_with('b') ? 90s : 60s;
    return static_cast<double>((duration - study.faults[0].end()).count()) / 1e6;
  }

  [[nodiscard]] std::vector<double> values(const Row& row, Metric metric) const {
    std::vector<double> all;
    for (const Figures& each : row.figures) all.push_back(each[metric]);
    return all;
  }

  /// The texts of a point's values, by the order of the sweeps; the last changes first.
  [[nodiscard]] std::vector<Texts> at(std::size_t point) const {
    std::vector<Texts> texts(study.sweeps.size());
    for (std::size_t i = study.sweeps.size(); i-- > 0;) {
      const std::size_t count = study.sweeps[i].values.size();
      texts[i] = study.sweeps[i].values[point % count];
      point /= count;
    }
    return texts;
  }

 private:
  void make_rows(test::Random& random) {
    const std::vector<Setting> longer = {{"run.duration", {"90s"}},
                                         {"upstream.limits", {"8/s", "9/min"}}};
    study.variants = {{"a", {}}, {"b, or \"c\"", longer}, {"\"d\"", {}}};
    study.variants.resize(static_cast<std::size_t>(random.between(1, 3)));
    if (study.variants.size() == 1 && random.one_in(2)) study.variants[0].name.clear();
    if (random.one_in(2)) study.sweeps.push_back({"arrivals.load", {{"0.5"}, {"2"}, {"1.5"}}});
    if (random.one_in(2)) {
      study.sweeps.push_back({"upstream.limits", {{"5/s", "9/min"}, {"7/s"}}});
    }
    if (random.one_in(3)) study.sweeps.push_back({"fleet.workers", {{"2"}, {"3"}}});
    if (random.one_in(2)) {  // of one variant, or at one value
      has_warm_up = true;
      if (random.one_in(2)) {
        study.variants.back().settings.push_back({"run.warm_up", {"auto"}});
      } else {
        study.sweeps.push_back({"run.warm_up", {{"1s"}, {"auto"}}});
      }
    }
    result.study = &study;
    result.replications = static_cast<std::size_t>(random.between(1, 6));
    for (std::size_t variant = 0; variant < study.variants.size(); ++variant) {
      for (std::size_t point = 0; point < study.points(); ++point) add_row(random, variant, point);
    }
  }

  void add_row(test::Random& random, std::size_t variant, std::size_t point) {
    Row& row = result.rows.emplace_back();
    row.variant = variant;
    row.point = point;
    row.warm_up = Span{random.between(0, 999'999)};
    row.figures = test::random_figures(random, result.replications);
    for (Figures& each : row.figures) {
      each[Metric::crashes] = random.one_in(30) ? 1 : 0;
      each[Metric::orphaned] = random.one_in(3) ? NAN : random.one_in(30) ? 0.5 : 0;
    }
    row.first.trace = random.next();
    const auto steps = static_cast<std::size_t>(random.between(1, 4));
    Series& s = row.first.series;
    s.step = 250ms;
    for (auto* const each :
         {&s.offered, &s.sent, &s.ok, &s.refused, &s.waiting, &s.unfinished, &s.store_operations}) {
      *each = random_counts(random, steps);
    }
    row.first.windows = {{random.between(1, 99), Span{random.between(1, 99)}, random.below(99)}};
    row.first.wait_quantiles = {{0.5, Span{random.between(1, 99)}}, {0.75, 100us}};
    row.first.workers = {static_cast<double>(random.between(0, 100)) / 4};
    for (const char* const name : judge_pool) {
      if (!random.one_in(4)) row.first.judges.emplace_back(name);
    }
  }

  void expect(test::Random& random) {
    Expectation made;
    const Metric metric =
        random.one_in(3) ? Metric::recovery : asked_of[random.below(std::size(asked_of))];
    made.metric = info(metric).name;
    const auto some_variant = [&] {
      return study.variants[random.below(study.variants.size())].name;
    };
    if (random.one_in(2)) made.variant = some_variant();
    if (random.one_in(2)) made.of = some_variant();
    const std::size_t point = random.below(study.points());
    if (random.one_in(2) && study.sweeps.size() == 1) made.at = joined(at(point)[0]);
    for (std::size_t i = 0; i < study.sweeps.size(); ++i) {
      if (random.one_in(2)) made.at_values.push_back({study.sweeps[i].path, at(point)[i]});
    }
    const Row& some = result.rows[random.below(result.rows.size())];
    const double value = some.figures[random.below(some.figures.size())][metric];
    const auto bound = [&] {  // often a value, and so the border of what has no spread
      if (random.one_in(2) && std::isfinite(value) && made.of.empty()) return value;
      return made.of.empty() ? static_cast<double>(random.between(0, 100))
                             : static_cast<double>(random.between(0, 40)) / 10;
    };
    if (random.one_in(2)) made.least = bound();
    if (random.one_in(2)) made.most = bound();
    if (!made.least && !made.most) {
      made.equals = bound();
      made.within = static_cast<double>(random.between(0, 5));
    }
    study.expectations.push_back(made);
  }

  /// As the runs of a study end: each replication of all rows, then the next.
  void object(test::Random& random) {
    std::set<std::tuple<std::string, std::size_t, std::size_t>> seen;
    for (std::size_t i = 0; i < result.replications; ++i) {
      for (const Row& row : result.rows) {
        for (const char* const name : judge_pool) {
          if (!random.one_in(20)) continue;
          const Objection objection{name, fmt::format("text {}", random.below(1000))};
          note_objection(result, row, i, objection);
          if (!seen.emplace(name, row.variant, row.point).second) continue;
          noted.push_back({name, row.variant, true, objection.text, i, row.point});
        }
      }
    }
  }
};

/// What the rows say of an event that must happen in some replication, or in none.
Judgement judged_event(const Grid& grid, const std::string& name, bool wanted) {
  const std::string title(info(metric(name)).title);
  for (const Row& row : grid.result.rows) {
    const auto values = grid.values(row, metric(name));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] > 0) {
        return {wanted ? "sometimes" : "never", row.variant, !wanted,
                title + ": it happened",        i,           row.point};
      }
    }
  }
  if (wanted) return {"sometimes", 0, true, title + ": it never happened", {}, 0};
  return {"never", 0, false, title + ": it did not happen", {}, 0};
}

std::vector<Judgement> expected_judgements(const Grid& grid) {
  std::vector<Judgement> all = grid.noted;
  for (const Row& row : grid.result.rows) {
    for (const std::string& name : row.first.judges) {
      const bool is_told = std::ranges::any_of(all, [&](const Judgement& each) {
        return each.judge == name && each.variant == row.variant && each.point == row.point;
      });
      if (!is_told) all.push_back({name, row.variant, false, {}, {}, row.point});
    }
  }
  for (const auto& name : grid.study.judges.sometimes) {
    all.push_back(judged_event(grid, name, true));
  }
  for (const auto& name : grid.study.judges.never) all.push_back(judged_event(grid, name, false));
  return all;
}

/// The values of an expectation in a row: its figure, or quotients of it.
std::vector<double> asked_values(const Grid& grid, const Expectation& expectation, const Row& row) {
  const Metric metric = sim::metric(expectation.metric);
  std::vector<double> all = grid.values(row, metric);
  if (expectation.of.empty()) return all;
  for (const Row& other : grid.result.rows) {
    if (grid.study.variants[other.variant].name != expectation.of) continue;
    if (other.point != row.point) continue;
    const auto divisors = grid.values(other, metric);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = std::isfinite(divisors[i]) && divisors[i] != 0 ? all[i] / divisors[i] : NAN;
    }
    break;
  }
  return all;
}

bool is_asked(const Grid& grid, const Expectation& expectation, const Row& row) {
  const std::string& variant = grid.study.variants[row.variant].name;
  if (!expectation.variant.empty() && expectation.variant != variant) return false;
  const auto at = grid.at(row.point);
  if (!expectation.at.empty() && expectation.at != joined(at[0])) return false;
  return std::ranges::all_of(expectation.at_values, [&](const Setting& wanted) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (grid.study.sweeps[i].path == wanted.path) return at[i] == wanted.texts;
    }
    return false;
  });
}

/// The rows of a CSV file; see RFC 4180.
std::vector<Lines> csv_rows(const std::string& text) {
  std::vector<Lines> rows;
  Lines fields{""};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      fields.back() += text[i++];
    } else if (text[i] == '"') {
      REQUIRE((quoted || fields.back().empty()));
      quoted = !quoted;
    } else if (!quoted && text[i] == ',') {
      fields.emplace_back();
    } else if (!quoted && text[i] == '\n') {
      rows.push_back(std::exchange(fields, {""}));
    } else {
      fields.back() += text[i];
    }
  }
  CHECK(fields == Lines{""});
  return rows;
}

/// A field for each sweep; one that is empty without a sweep.
Lines point_fields(const Grid& grid, std::size_t point) {
  Lines fields;
  for (const Texts& texts : grid.at(point)) fields.push_back(joined(texts));
  if (fields.empty()) fields.emplace_back();
  return fields;
}

/// Each sweep and its value.
std::string point_name(const Grid& grid, std::size_t point) {
  Lines each;
  for (std::size_t i = 0; i < grid.study.sweeps.size(); ++i) {
    each.push_back(grid.study.sweeps[i].path + " = " + joined(grid.at(point)[i]));
  }
  return joined(each);
}

/// Its name, then those of the sweeps, if there are several.
Lines csv_head(const Grid& grid, const Lines& rest) {
  Lines head{"variant"};
  if (grid.study.sweeps.size() < 2) {
    head.emplace_back("point");
  } else {
    for (const Sweep& sweep : grid.study.sweeps) head.push_back(sweep.path);
  }
  head.insert(head.end(), rest.begin(), rest.end());
  return head;
}

std::string number(double value) { return fmt::format("{}", value); }

void check_csv(const Grid& grid) {
  std::vector<Lines> figures{
      csv_head(grid, {"metric", "unit", "mean", "low", "high", "replications", "never"})};
  std::vector<Lines> series{csv_head(grid, {"time_s", "offered", "sent", "ok", "refused", "waiting",
                                            "unfinished", "store_operations"})};
  for (const Row& row : grid.result.rows) {
    Lines start{grid.study.variants[row.variant].name};
    for (const std::string& field : point_fields(grid, row.point)) start.push_back(field);
    for (const MetricInfo& each : metrics()) {
      const Estimate value = row.estimate(metric(each.name), grid.study.confidence);
      if (value.replications + value.never == 0) continue;
      const bool has_mean = value.never == 0;
      const bool has_interval = has_mean && value.replications > 1;
      Lines line = start;
      for (const std::string& field :
           {std::string(each.name), std::string(each.unit),
            has_mean ? number(value.mean) : std::string(),
            has_interval ? number(value.low) : std::string(),
            has_interval ? number(value.high) : std::string(), std::to_string(value.replications),
            std::to_string(value.never)}) {
        line.push_back(field);
      }
      figures.push_back(line);
    }
    const Series& s = row.first.series;
    for (std::size_t i = 0; i < s.ok.size(); ++i) {
      Lines line = start;
      line.push_back(number(0.25 * static_cast<double>(i)));
      for (const std::uint32_t count : {s.offered[i], s.sent[i], s.ok[i], s.refused[i],
                                        s.waiting[i], s.unfinished[i], s.store_operations[i]}) {
        line.push_back(std::to_string(count));
      }
      series.push_back(line);
    }
  }
  CHECK(csv_rows(figures_csv(grid.result)) == figures);
  CHECK(csv_rows(series_csv(grid.result)) == series);
}

json optional_json(const std::optional<double>& value) { return value ? json(*value) : json(); }

/// The keys of an estimate.
json estimate_json(const Grid& grid, const Estimate& value, std::size_t variant) {
  const bool has_interval = value.is_known() && value.replications > 1;
  json all = {{"value", value.is_known() ? json(value.mean) : json()},
              {"low", has_interval && std::isfinite(value.low) ? json(value.low) : json()},
              {"high", has_interval && std::isfinite(value.high) ? json(value.high) : json()},
              {"replications", value.replications}};
  if (value.never != 0) {
    all["never"] = value.never;
    all["after_s"] = grid.remain(variant);
  }
  return all;
}

const char* name_of(Status status) {
  return status == Status::holds ? "holds" : status == Status::fails ? "fails" : "undecided";
}

json sweep_json(const Grid& grid) {
  const auto& sweeps = grid.study.sweeps;
  if (sweeps.empty()) return {};
  json axes = json::array();
  Lines paths;
  for (const Sweep& sweep : sweeps) {
    paths.push_back(sweep.path);
    Lines values;
    for (const Texts& texts : sweep.values) values.push_back(joined(texts));
    axes.push_back({{"parameter", sweep.path}, {"values", values}});
  }
  if (sweeps.size() == 1) return axes[0];
  Lines points;
  for (std::size_t i = 0; i < grid.study.points(); ++i) points.push_back(point_name(grid, i));
  return {{"parameter", joined(paths)}, {"values", points}, {"axes", axes}};
}

void check_json(const Grid& grid) {
  const Study& study = grid.study;
  const json all = json::parse(to_json(grid.result, "x"));
  const json head = {{"verdict", name_of(grid.result.status())},
                     {"scenario", study.name},
                     {"question", study.question},
                     {"seed", study.seed},
                     {"replications", grid.result.replications},
                     {"planned_replications", study.replications},
                     {"partial", grid.result.partial},
                     {"precision", study.precision},
                     {"imprecise", grid.result.imprecise},
                     {"confidence", study.confidence},
                     {"duration_us", 60'000'000},
                     {"warmup_rule", grid.has_warm_up ? json("MSER-5") : json()},
                     {"headline", study.headline},
                     {"notes", study.notes},
                     {"sweep", sweep_json(grid)}};
  for (const auto& [key, value] : head.items()) {
    CAPTURE(key);
    CHECK(all[key] == value);
  }
  for (const MetricInfo& each : metrics()) {
    const json& told = all["metrics"][std::string(each.name)];
    CHECK(told["title"] == each.title);
    CHECK(told["unit"] == each.unit);
    CHECK(told["least"] == (std::isfinite(each.least) ? json(each.least) : json()));
    CHECK(told["most"] == (std::isfinite(each.most) ? json(each.most) : json()));
  }
  for (const Parameter& each : parameters()) {
    const std::string path(each.path);
    const auto set = std::ranges::find(study.settings, path, &Setting::path);
    CHECK(all["parameters"][path] ==
          (set != study.settings.end() ? set->texts[0] : std::string(each.standard)));
  }
  for (const Judgement& each : grid.result.judgements) {
    CHECK(all["judge_help"][each.judge] == judge_help(each.judge));
  }
  json faults = json::array();
  for (const FaultPlan& fault : study.faults) {
    faults.push_back({fault.at.count(), (fault.at + fault.length).count()});
  }
  for (std::size_t i = 0; i < study.faults.size(); ++i) {
    CHECK(json{all["faults"][i]["from_us"], all["faults"][i]["to_us"]} == faults[i]);
  }
  CHECK(all["faults"][1]["text"] == "upstream slow, factor 2.5");
  CHECK(all["faults"][2]["text"] == "network loss, share 0.5, factor 0.25");

  REQUIRE(all["rows"].size() == grid.result.rows.size());
  for (std::size_t i = 0; i < grid.result.rows.size(); ++i) {
    const Row& row = grid.result.rows[i];
    const json& told = all["rows"][i];
    CHECK(told["variant"] == study.variants[row.variant].name);
    CHECK(told["point"] == row.point);
    CHECK(told["warmup_us"] == row.warm_up.count());
    CHECK(told["trace"] == fmt::format("{:x}", row.first.trace));
    json settings = json::object();
    for (const Setting& each : study.variants[row.variant].settings) {
      settings[each.path] = joined(each.texts);
    }
    CHECK(told["parameters"] == settings);
    CHECK(told["charts_of"] ==
          json{{"replication", 1}, {"of", grid.result.replications}, {"seed", study.seed}});
    for (const MetricInfo& each : metrics()) {
      const Estimate value = row.estimate(metric(each.name), study.confidence);
      CHECK(told["figures"][std::string(each.name)] == estimate_json(grid, value, row.variant));
    }
    const Series& s = row.first.series;
    CHECK(told["series"] == json{{"step_us", 250'000},
                                 {"columns",
                                  {{"offered", s.offered},
                                   {"admitted", s.sent},
                                   {"ok", s.ok},
                                   {"refused", s.refused},
                                   {"waiting", s.waiting},
                                   {"unfinished", s.unfinished},
                                   {"store_operations", s.store_operations}}}});
    const WorstWindow& window = row.first.windows[0];
    CHECK(told["windows"] == json::array({{{"limit", window.limit},
                                           {"window_us", window.window.count()},
                                           {"worst", window.worst}}}));
    CHECK(told["wait_quantiles"][0] == json{0.5, row.first.wait_quantiles[0].second.count()});
    CHECK(told["workers"] == row.first.workers);
  }

  REQUIRE(all["expectations"].size() == grid.result.verdicts.size());
  for (std::size_t i = 0; i < grid.result.verdicts.size(); ++i) {
    const Verdict& verdict = grid.result.verdicts[i];
    const Expectation& expectation = *verdict.expectation;
    json expected = estimate_json(grid, verdict.value, verdict.variant);
    expected.update({{"text", verdict.text},
                     {"status", name_of(verdict.status)},
                     {"metric", expectation.metric},
                     {"variant", study.variants[verdict.variant].name},
                     {"point", verdict.point},
                     {"least", optional_json(expectation.least)},
                     {"most", optional_json(expectation.most)},
                     {"equals", optional_json(expectation.equals)},
                     {"within", expectation.within},
                     {"of", expectation.of}});
    CHECK(all["expectations"][i] == expected);
  }
  json judges = json::array();
  for (const Judgement& each : grid.result.judgements) {
    judges.push_back({{"name", each.judge},
                      {"variant", study.variants[each.variant].name},
                      {"point", each.point},
                      {"status", each.objects ? "objects" : "holds"},
                      {"text", each.text}});
  }
  CHECK(all["judges"] == judges);
}

/// What stands between the table and the verdicts.
std::string summary(const Grid& grid) {
  const Study& study = grid.study;
  const std::size_t count = grid.result.replications;
  std::string text = count == 1 ? "1 replication" : fmt::format("{} replications", count);
  if (study.sweeps.size() > 1) {
    std::string factors;
    for (const Sweep& sweep : study.sweeps) {
      factors +=
          (factors.empty() ? "" : " x ") + fmt::format("{} of {}", sweep.values.size(), sweep.path);
    }
    text += fmt::format(" of {} points ({})", study.points(), factors);
  }
  text += count == 1                 ? ", without intervals"
          : study.confidence == 0.95 ? ", 95 % intervals"
                                     : ", 99 % intervals";
  text += fmt::format(", seed {}", study.seed);
  if (grid.result.partial) text += "; PARTIAL: it was stopped";
  text += "\n\n";
  if (!grid.result.imprecise) return text;
  return text + fmt::format("undecided {} is not known within {} % in every row\n",
                            info(metric(study.headline[0])).title,
                            study.precision == 0 ? "0" : "2.5");
}

void check_text(const Grid& grid) {
  const Study& study = grid.study;
  std::string expected = summary(grid);
  for (const Verdict& verdict : grid.result.verdicts) {
    const bool is_quotient = !verdict.expectation->of.empty();
    const auto unit = is_quotient ? "" : info(metric(verdict.expectation->metric)).unit;
    expected += fmt::format("{:<10}{}; it is {}\n",
                            verdict.status == Status::fails ? "FAILS" : name_of(verdict.status),
                            verdict.text, figure_text(verdict.value, unit));
  }
  for (const Judgement& each : grid.result.judgements) {
    if (!each.objects) continue;
    std::string place;
    const std::string& variant = study.variants[each.variant].name;
    // What never happened did so in no row.
    if (each.replication && !variant.empty()) place = " of '" + variant + "'";
    if (each.replication && !study.sweeps.empty()) place += " at " + point_name(grid, each.point);
    expected += fmt::format("OBJECTS   {}{}: {}\n", each.judge, place, each.text);
  }
  const std::string text = to_text(grid.result);
  CAPTURE(text, expected);
  CHECK(text.ends_with("\n\n" + expected));
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i < 3; ++i) std::getline(lines, line);
  CHECK((line.find("warm-up (MSER-5)") != std::string::npos) == grid.has_warm_up);
  for (const Row& row : grid.result.rows) {
    std::getline(lines, line);
    Lines names{study.variants[row.variant].name, point_name(grid, row.point)};
    std::erase(names, "");
    const std::string name = names.empty() ? study.name : joined(names);
    std::size_t at = line.find_first_not_of(' ');
    CHECK(line.substr(std::min(at, line.size())).starts_with(name + "  "));
    for (const std::string& each : study.headline) {
      const Estimate value = row.estimate(metric(each), study.confidence);
      at = line.find("  " + figure_text(value, info(metric(each)).unit), at);
      CHECK(at != std::string::npos);
    }
    if (grid.has_warm_up) CHECK(line.ends_with("  " + tool::duration(row.warm_up)));
  }
}

/// The lines of the file beside a scenario, in its order.
Lines figure_lines(const Grid& grid, const StudyResult& result) {
  Lines all;
  for (const Row& row : result.rows) {
    std::string name = grid.study.variants[row.variant].name;
    if (!grid.study.sweeps.empty()) name += "@" + grid.study.point_text(row.point);
    all.push_back(fmt::format("{} | trace | {:016x}", name, row.first.trace));
    if (grid.has_warm_up) {
      all.push_back(fmt::format("{} | warm_up | {}us", name, row.warm_up.count()));
    }
    for (const std::string& each : grid.study.headline) {
      const Estimate value = row.estimate(metric(each), grid.study.confidence);
      if (value.never != 0) {
        all.push_back(fmt::format("{} | {} | not in {} of {}", name, each, value.never, value.of));
      } else if (value.replications != 0) {
        all.push_back(
            fmt::format("{} | {} | {:.6g} | {:.6g}", name, each, value.mean, value.half_width));
      }
    }
  }
  return all;
}

/// The file has every line, and what differs from it is told, in order and on both sides.
void check_figures(const Grid& grid, test::Random& random) {
  const test::Folder folder;
  const auto file = folder.path() / "rows.figures";
  write_figures(grid.result, file);
  Lines before;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) before.push_back(line);
  CHECK(before == figure_lines(grid, grid.result));
  CHECK(changed(grid.result, file).empty());

  StudyResult other = grid.result;
  Row& row = other.rows[random.below(other.rows.size())];
  if (random.one_in(2)) ++row.first.trace;
  row.figures[0][asked_of[random.below(std::size(asked_of))]] = random.one_in(2) ? NAN : 31;
  const Lines now = figure_lines(grid, other);
  const auto lacks = [](const Lines& lines, const std::string& line) {
    return std::ranges::find(lines, line) == lines.end();
  };
  std::string expected;
  for (const std::string& line : now) {
    if (lacks(before, line)) expected += "now:    " + line + "\n";
  }
  Lines gone = before;
  std::erase_if(gone, [&](const std::string& line) { return !lacks(now, line); });
  std::ranges::sort(gone);
  for (const std::string& line : gone) expected += "before: " + line + "\n";
  CHECK(changed(other, file) == expected);
}

}  // namespace

TEST_CASE("each row is judged, and told, by its own figures") {
  test::Random random("each row is judged, and told, by its own figures");
  CAPTURE(random.repeat());
  std::set<Status> seen;
  std::size_t quotients = 0;
  for (std::size_t life = 0; life < test::scaled(60, 60); ++life) {
    const Grid grid(random);
    const StudyResult& result = grid.result;
    std::size_t next = 0;
    Status worst = result.partial || result.imprecise ? Status::undecided : Status::holds;
    for (const Expectation& expectation : grid.study.expectations) {
      for (const Row& row : result.rows) {
        if (!is_asked(grid, expectation, row)) continue;
        REQUIRE(next < result.verdicts.size());
        const Verdict& verdict = result.verdicts[next++];
        CHECK(verdict.expectation == &expectation);
        REQUIRE(verdict.variant == row.variant);
        REQUIRE(verdict.point == row.point);
        if (verdict.status == Status::fails) worst = Status::fails;
        if (verdict.status == Status::undecided && worst == Status::holds) worst = verdict.status;
        const bool is_quotient = !expectation.of.empty();
        const Metric metric = sim::metric(expectation.metric);
        Range possible = test::possible_of(metric);
        if (is_quotient) possible = {possible.least < 0 ? -infinite : 0, infinite};
        const auto values = asked_values(grid, expectation, row);
        CAPTURE(expectation.metric, values);
        const auto expected =
            expected_status(expectation, values, possible,
                            is_quotient ? NAN : grid.remain(row.variant), grid.study.confidence);
        if (expected) CHECK(verdict.status == *expected);
        if (is_quotient && verdict.value.is_known()) ++quotients;
        seen.insert(verdict.status);
        const Estimate value = estimate_of(values, possible, grid.study.confidence);
        CHECK(figure_text(verdict.value, "") == figure_text(value, ""));
      }
    }
    CHECK(next == result.verdicts.size());

    const std::vector<Judgement> judgements = expected_judgements(grid);
    REQUIRE(result.judgements.size() == judgements.size());
    for (std::size_t i = 0; i < judgements.size(); ++i) {
      const Judgement& told = result.judgements[i];
      const Judgement& expected = judgements[i];
      CAPTURE(expected.judge, expected.variant, expected.point);
      CHECK(told.judge == expected.judge);
      CHECK(told.variant == expected.variant);
      CHECK(told.point == expected.point);
      CHECK(told.objects == expected.objects);
      CHECK(told.text == expected.text);
      CHECK(told.replication == expected.replication);
      if (expected.objects) worst = Status::fails;
    }
    CHECK(result.status() == worst);
    check_csv(grid);
    check_json(grid);
    check_text(grid);
    check_figures(grid, random);
  }
  CHECK(seen.size() == 3);
  CHECK(quotients > 0);
}
