// Reading studies. Each error names the file and the line.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <stdexcept>

#include <toml++/toml.h>

#include "sim/scenario/effects.hpp"
#include "sim/scenario/text.hpp"
#include "sim/study/study.hpp"
#include "sluice/sim/figures.hpp"

namespace sluice::sim::scenario {
namespace {

constexpr int schema = 1;
constexpr std::size_t most_includes = 8;

/// An error that names its place already.
struct PlacedError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// An error in a file. `where`: "file:line".
[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw PlacedError(where + ": " + what);
}

std::string where(const toml::source_region& source) {
  return (source.path ? *source.path : std::string("--set")) + ":" +
         std::to_string(source.begin.line);
}
std::string where(const toml::node& node) { return where(node.source()); }

/// The text of a scalar, as it would be written after --set.
std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* real = node.as_floating_point()) {
    char buffer[32];
    return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), real->get()).ptr};
  }
  fail(where(node), "expected a text, a number, true or false");
}

Texts texts_of(const toml::node& node) {
  const toml::array* const list = node.as_array();
  if (list == nullptr) return {text_of(node)};
  Texts texts;
  for (const toml::node& item : *list) texts.push_back(text_of(item));
  return texts;
}

const toml::table& table_of(const toml::node& node, std::string_view name) {
  if (const toml::table* const table = node.as_table()) return *table;
  fail(where(node), std::string(name) + " must be a table");
}

/// The tables of "[[name]]".
std::vector<const toml::table*> tables_of(const toml::node& node, std::string_view name) {
  const toml::array* const list = node.as_array();
  if (list == nullptr) fail(where(node), "write [[" + std::string(name) + "]]");
  std::vector<const toml::table*> tables;
  for (const toml::node& item : *list) tables.push_back(&table_of(item, name));
  return tables;
}

/// Runs `read` and adds the place to its error, unless it has one.
template <class Read>
void at(const toml::node& node, const std::string& name, Read read) {
  try {
    read();
  } catch (const PlacedError&) {
    throw;
  } catch (const std::invalid_argument& error) {
    fail(where(node), (name.empty() ? "" : name + ": ") + std::string(error.what()));
  }
}

/// A key of a table, and what reads its value.
struct Reader {
  std::string_view key;
  std::function<void(const toml::node&)> read;
};

/// Reads every key of a table by its reader.
void read_keys(const toml::table& table, std::span<const Reader> readers) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const auto found = std::ranges::find(readers, name, &Reader::key);
    if (found == readers.end()) {
      std::vector<std::string_view> known;
      for (const Reader& reader : readers) known.push_back(reader.key);
      fail(where(node), name + ": there is no such key here" + did_you_mean(name, known));
    }
    at(node, name, [&found, &value = node] { found->read(value); });
  }
}

/// Reads a text into `target`, by a function that parses it.
template <class T, class Parse>
auto into(T& target, Parse parse) {
  return
      [&target, parse](const toml::node& node) { target = static_cast<T>(parse(text_of(node))); };
}
auto text_into(std::string& target) { return into(target, std::identity()); }
auto texts_into(std::vector<std::string>& target) {
  return [&target](const toml::node& node) { target = texts_of(node); };
}
auto span_into(Span& target) { return into(target, &parse_span); }
template <class T>
auto number_into(T& target, double least, double most) {
  return into(target, [=](const std::string& text) { return parse_number(text, least, most); });
}
template <class T>
auto count_into(T& target, Word least, Word most) {
  return into(target, [=](const std::string& text) { return parse_count(text, least, most); });
}

/// What a file names is beside it.
void resolve(const std::string& path, const toml::node& node, Texts& texts) {
  const toml::source_path_ptr& file = node.source().path;
  if (path != "arrivals.file" || !file) return;
  for (std::string& text : texts) {
    const auto beside = std::filesystem::absolute(*file).parent_path() / text;
    text = beside.lexically_normal().string();
  }
}

/// Parameters in tables by section: "arrivals.rate" is `rate` in [arrivals].
void read_section(const std::string& section, const toml::table& table,
                  std::vector<Setting>& settings) {
  Scenario scratch;
  for (const auto& [key, node] : table) {
    Setting setting{section + "." + std::string(key.str()), texts_of(node), where(node)};
    resolve(setting.path, node, setting.texts);
    at(node, "", [&] { set(scratch, setting.path, setting.texts); });
    settings.push_back(std::move(setting));
  }
}

/// Refuses values that a kind of fault does not take, whatever they are.
void check_keys(const toml::table& table, const FaultInfo& info) {
  for (const auto& [takes, key] : fault_keys) {
    const toml::node* const node = table.get(key);
    if (node == nullptr || info.has(takes)) continue;
    fail(where(*node), std::string(key) + " does nothing to a fault of kind " +
                           std::string(info.name) + ": leave it out");
  }
}

FaultPlan read_fault(const toml::table& table) {
  FaultPlan fault;
  bool has_kind = false;
  const Reader readers[] = {
      {"kind",
       [&](const toml::node& node) {
         fault.kind = parse_fault(text_of(node));
         has_kind = true;
       }},
      {"at", span_into(fault.at)},
      {"for",
       [&](const toml::node& node) {
         span_into(fault.length)(node);
         if (fault.length == Span{0}) expected("more than 0s; a fault without it lasts", "0s");
       }},
      {"share", number_into(fault.share, 0, 1)},
      {"factor", number_into(fault.factor, 0, 1'000'000)},
      {"step", into(fault.step, &parse_step)},
      {"limit", into(fault.limit, &parse_window_limit)},
  };
  read_keys(table, readers);
  if (!has_kind) fail(where(table), "a [[fault]] needs a kind");
  check_keys(table, info_of(fault.kind));
  return fault;
}

Variant read_variant(const toml::table& table) {
  Variant variant;
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (name == "name") {
      variant.name = text_of(node);
    } else {
      read_section(name, table_of(node, name), variant.settings);
    }
  }
  if (variant.name.empty()) fail(where(table), "a [[variant]] needs a name");
  return variant;
}

Sweep read_sweep(const toml::table& table) {
  Sweep sweep;
  sweep.where = where(table);
  const Reader readers[] = {
      {"parameter", text_into(sweep.path)},
      {"values",
       [&](const toml::node& node) {
         if (!node.is_array() || node.as_array()->empty()) expected("a list of values", "");
         for (const toml::node& item : *node.as_array()) sweep.values.push_back(texts_of(item));
       }},
  };
  read_keys(table, readers);
  at(table, "[[sweep]]", [&] {
    if (sweep.values.empty()) expected("a list `values`", "");
    for (Texts& value : sweep.values) resolve(sweep.path, table, value);
    sweep.check();
  });
  return sweep;
}

/// The values of a point: `{ arrivals.load = 2, jobs.keys = 5 }`.
void read_point(const std::string& section, const toml::table& table,
                std::vector<Setting>& values) {
  for (const auto& [key, node] : table) {
    const std::string path = (section.empty() ? "" : section + ".") + std::string(key.str());
    if (const toml::table* const inner = node.as_table()) {
      read_point(path, *inner, values);
    } else {
      values.push_back({path, texts_of(node)});
    }
  }
}

Expectation read_expectation(const toml::table& table) {
  Expectation expectation;
  expectation.where = where(table);
  constexpr double any = 1e18;
  const auto number = [](std::optional<double>& target) { return number_into(target, -any, any); };
  const Reader readers[] = {
      {"metric",
       [&](const toml::node& node) {
         expectation.metric = text_of(node);
         (void)metric(expectation.metric);
       }},
      {"variant", text_into(expectation.variant)},
      {"of", text_into(expectation.of)},
      {"at",
       [&](const toml::node& node) {
         if (node.is_table()) return read_point("", *node.as_table(), expectation.at_values);
         expectation.at = text_of(node);
       }},
      {"least", number(expectation.least)},
      {"most", number(expectation.most)},
      {"equals", number(expectation.equals)},
      {"within", number_into(expectation.within, 0, any)},
  };
  read_keys(table, readers);
  if (expectation.metric.empty()) fail(where(table), "an [[expect]] needs a metric");
  if (!expectation.least && !expectation.most && !expectation.equals) {
    fail(where(table), "an [[expect]] needs least, most or equals");
  }
  if (expectation.within != 0 && !expectation.equals) {
    fail(where(table), "within does nothing without equals: leave it out, or set equals");
  }
  if (expectation.least && expectation.most && *expectation.least > *expectation.most) {
    fail(where(table), fmt::format("an [[expect]] of least = {} and most = {} cannot hold",
                                   *expectation.least, *expectation.most));
  }
  return expectation;
}

void read_judges(const toml::table& table, JudgeOptions& judges) {
  const auto events = [](std::vector<std::string>& target) {
    return [&target](const toml::node& node) {
      target = texts_of(node);
      for (const std::string& name : target) (void)metric(name);
    };
  };
  const Reader readers[] = {
      {"recovery", span_into(judges.recovery)},
      {"sometimes", events(judges.sometimes)},
      {"never", events(judges.never)},
  };
  read_keys(table, readers);
}

/// Reads the tables of "[[name]]", in place of those before.
template <class T, class Read>
auto each_into(std::vector<T>& all, const char* name, Read read) {
  return [&all, name, read](const toml::node& node) {
    all.clear();
    for (const auto* table : tables_of(node, name)) all.push_back(read(*table));
  };
}

toml::table parse(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    const bool is_other = std::filesystem::exists(file, error);
    fail(file.string(), is_other ? "it is a folder, or no regular file" : "there is no such file");
  }
  try {
    return toml::parse_file(file.string());
  } catch (const toml::parse_error& bad) {
    fail(where(bad.source()), std::string(bad.description()));
  }
}

class StudyReader {
 public:
  void read(const std::filesystem::path& file, std::size_t depth = 0) {
    const toml::table document = parse(file);
    const toml::node* const base = document.get("include");
    check_schema(file, document, base == nullptr);
    if (base != nullptr) {
      const std::filesystem::path included = file.parent_path() / text_of(*base);
      std::error_code error;
      if (!std::filesystem::is_regular_file(included, error)) {
        fail(where(*base), "include: there is no file " + included.string());
      }
      if (depth == most_includes) {
        fail(where(*base), "include: more than " + std::to_string(most_includes) +
                               " files include one another, perhaps in a circle");
      }
      read(included, depth + 1);
    }
    read_document(document);
  }

  /// Of the faults, in their order.
  [[nodiscard]] const std::vector<std::string>& fault_places() const { return fault_places_; }

  Study take(const std::filesystem::path& file) {
    if (study_.name.empty()) study_.name = file.stem().string();
    if (study_.variants.empty()) study_.variants.emplace_back();
    return std::move(study_);
  }

 private:
  /// A file that includes another one need not repeat the version.
  static void check_schema(const std::filesystem::path& file, const toml::table& document,
                           bool required) {
    const toml::node* const version = document.get("schema");
    if (version == nullptr && !required) return;
    if (version != nullptr && version->is_integer() &&
        text_of(*version) == std::to_string(schema)) {
      return;
    }
    fail(version != nullptr ? where(*version) : file.string() + ":1",
         "schema = 1 must be there; it is the only version");
  }

  void read_document(const toml::table& document) {
    std::vector<Reader> readers = {
        {"schema", [](const toml::node&) {}},
        {"include", [](const toml::node&) {}},
        {"name", text_into(study_.name)},
        {"question", text_into(study_.question)},
        {"description", text_into(study_.description)},
        {"notes", texts_into(study_.notes)},
        {"headline",
         [this](const toml::node& node) {
           study_.headline = texts_of(node);
           if (study_.headline.empty()) expected("one metric or more", "");
           for (const std::string& name : study_.headline) (void)metric(name);
         }},
        {"seed", count_into(study_.seed, 0, word_limit)},
        {"replications", count_into(study_.replications, 1, 100'000)},
        {"confidence", number_into(study_.confidence, 0.5, 0.9999)},
        {"precision", number_into(study_.precision, 0, 1)},
        {"judges",
         [this](const toml::node& node) { read_judges(table_of(node, "judges"), study_.judges); }},
        {"fault",
         [this](const toml::node& node) {
           study_.faults.clear();
           fault_places_.clear();
           for (const auto* table : tables_of(node, "fault")) {
             study_.faults.push_back(read_fault(*table));
             fault_places_.push_back(where(*table));
           }
         }},
        {"variant", each_into(study_.variants, "variant", &read_variant)},
        {"sweep",
         [this](const toml::node& node) {
           study_.sweeps.clear();
           for (const auto* table : tables_of(node, "sweep")) add_sweep(*table);
         }},
        {"expect", each_into(study_.expectations, "expect", &read_expectation)},
    };
    for (const Parameter& parameter : parameters()) {
      const auto section = parameter.path.substr(0, parameter.path.find('.'));
      if (std::ranges::find(readers, section, &Reader::key) == readers.end()) {
        readers.push_back({section, [this, name = std::string(section)](const toml::node& node) {
                             read_section(name, table_of(node, name), study_.settings);
                           }});
      }
    }
    read_keys(document, readers);
  }

  void add_sweep(const toml::table& table) {
    Sweep sweep = read_sweep(table);
    if (std::ranges::find(study_.sweeps, sweep.path, &Sweep::path) != study_.sweeps.end()) {
      fail(where(table), "[[sweep]]: " + sweep.path + " is swept twice");
    }
    study_.sweeps.push_back(std::move(sweep));
    if (study_.sweeps.size() > 1) check_grid(table);
  }

  /// Called for each sweep, so that the product stays small.
  void check_grid(const toml::table& table) const {
    if (study_.points() <= most_points) return;
    std::string product;
    for (const Sweep& sweep : study_.sweeps) {
      product += (product.empty() ? "" : " x ") + std::to_string(sweep.values.size()) + " of " +
                 sweep.path;
    }
    fail(where(table), "[[sweep]]: " + product + " are " + std::to_string(study_.points()) +
                           " points, and at most " + std::to_string(most_points) +
                           " can be run: leave out values, or sweep fewer parameters at a time");
  }

  Study study_;
  std::vector<std::string> fault_places_;
};

/// "path=value", where the value may be anything that TOML has, or a text without quotes.
Setting read_override(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) fail("--set", "expected PATH=VALUE, got \"" + text + "\"");
  const std::string value(trim(std::string_view(text).substr(equals + 1)));
  Setting setting{std::string(trim(std::string_view(text).substr(0, equals))), {}, "--set"};
  try {
    const toml::table parsed = toml::parse("value = " + value);
    setting.texts = texts_of(*parsed.get("value"));
  } catch (const std::exception&) {  // no TOML, or no value of a parameter
    setting.texts = {value};
  }
  return setting;
}

/// An expectation at values of several sweeps names their parameters.
void check_point(const Study& study, const Expectation& expectation) {
  if (!expectation.at.empty() && study.sweeps.size() > 1) {
    fail(expectation.where, "at: of several sweeps, name the parameter too, as at = { " +
                                study.sweeps.front().path + " = ... }");
  }
  for (const auto& [path, texts, place] : expectation.at_values) {
    const auto swept = std::ranges::find(study.sweeps, path, &Sweep::path);
    if (swept == study.sweeps.end()) fail(expectation.where, "at: " + path + " is not swept");
    if (std::ranges::find(swept->values, texts) != swept->values.end()) continue;
    Texts all;
    std::ranges::transform(swept->values, std::back_inserter(all), joined);
    fail(expectation.where,
         "at: " + joined(texts) + " is not a value of the sweep of " + path + ": " + joined(all));
  }
}

/// The names of variants differ, and what an expectation names is there.
void check_names(const Study& study, const std::string& file) {
  std::vector<std::string_view> names;
  for (const Variant& variant : study.variants) {
    if (std::ranges::find(names, variant.name) != names.end()) {
      fail(file, "two variants have the name \"" + variant.name + "\"");
    }
    names.push_back(variant.name);
  }
  for (const Expectation& expectation : study.expectations) {
    for (const std::string& name : {expectation.variant, expectation.of}) {
      if (name.empty() || std::ranges::find(names, name) != names.end()) continue;
      fail(expectation.where, "there is no variant \"" + name + "\"" + did_you_mean(name, names));
    }
    check_point(study, expectation);
    if (expectation.at.empty()) continue;
    std::vector<std::string> points;
    for (std::size_t i = 0; i < study.points(); ++i) points.push_back(study.point_text(i));
    if (std::ranges::find(points, expectation.at) != points.end()) continue;
    fail(expectation.where,
         "at: \"" + expectation.at + "\" is not a value of the sweep" +
             (study.sweeps.empty() ? ", because there is none" : ": " + joined(points)));
  }
}

void apply_override(Study& study, const std::string& text) {
  const Setting setting = read_override(text);
  try {
    Scenario scratch;
    set(scratch, setting.path, setting.texts);
  } catch (const std::invalid_argument& error) {
    fail("--set", error.what());
  }
  const auto is_set = [&setting](const auto& each) { return each.path == setting.path; };
  if (std::erase_if(study.sweeps, is_set) != 0) {
    // What is expected at a value of the sweep says nothing of another one.
    std::erase_if(study.expectations, [&](const Expectation& each) {
      return !each.at.empty() || std::ranges::any_of(each.at_values, is_set);
    });
  }
  // After what a variant sets, because the user asked for it.
  for (Variant& variant : study.variants) variant.settings.push_back(setting);
}

/// What is to be known of the traces, before the figures.
void warn(Study& study, const Scenario& scenario) {
  if (!scenario.arrivals.trace) return;
  const auto add = [&all = study.warnings](const std::string& warning) {
    if (std::ranges::find(all, warning) == all.end()) all.push_back(warning);
  };
  const TraceFile file = study.traces->read(scenario.arrivals.file);
  std::ranges::for_each(file.warnings, add);
  const auto& calls = *scenario.arrivals.trace;
  const auto end =
      std::ranges::lower_bound(calls, scenario.duration, {}, &ArrivalOptions::Traced::at);
  if (end == calls.end()) return;
  add(scenario.arrivals.file + ": " + std::to_string(calls.end() - end) + " of " +
      std::to_string(calls.size()) +
      " calls come after run.duration and are left out; the last comes at " +
      std::to_string(calls.back().at.count() / 1'000'000) + "s");
}

/// Refuses what the file sets and nothing uses, and then what --set does. What a file includes may
/// set more than it needs, and so may a file of which --set disables a part.
void refuse_idle(const Study& study, const std::string& place,
                 const std::vector<std::string>& fault_places = {}) {
  const auto is_there = [&place](const std::string& where) { return where.starts_with(place); };
  if (const auto found = find_idle(study, is_there, fault_places)) fail(found->where, found->why);
}

}  // namespace

Study load_study(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  StudyReader reader;
  reader.read(file);
  Study study = reader.take(file);
  refuse_idle(study, file.string() + ":", reader.fault_places());
  for (const std::string& text : overrides) apply_override(study, text);
  refuse_idle(study, "--set");
  check_names(study, file.string());
  for (std::size_t v = 0; v < study.variants.size(); ++v) {
    for (std::size_t p = 0; p < study.points(); ++p) {
      try {
        const Scenario row = study.scenario(v, p);
        // Of a row in which the faults do nothing, nobody asks whether it recovers from them.
        const bool is_asked = study.faults.empty() || !row.faults.empty();
        if (is_asked) validate_recovery(row, study.judges.recovery);
        warn(study, row);
      } catch (const std::invalid_argument& error) {
        fail(file.string() + study.row_text(v, p), error.what());
      }
    }
  }
  return study;
}

}  // namespace sluice::sim::scenario
