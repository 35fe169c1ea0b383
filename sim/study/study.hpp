// Study: what a scenario file says: one scenario, its variants, its sweeps, and what is expected of
// the figures. Threading: a plain value.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/parameters.hpp"
#include "sim/study/trace_file.hpp"
#include "sluice/sim/scenario.hpp"

namespace sluice::sim::scenario {

/// "5/s, 9/min".
[[nodiscard]] std::string joined(const Texts& texts);

struct Setting {
  std::string path;
  Texts texts;
  std::string where{};  ///< "file:line", or "--set"; "": made by the program
};

/// The scenario under other parameters. All variants have the same arrivals and delays, wherever
/// the parameters leave them alone.
struct Variant {
  std::string name;
  std::vector<Setting> settings;
};

/// One parameter with several values.
struct Sweep {
  std::string path;
  std::vector<Texts> values;
  std::string where{};

  /// Throws std::invalid_argument for what is no value of the parameter, and for one that is there
  /// twice.
  void check() const;
};

/// What a figure must be. It holds if the whole confidence interval lies in [least, most] and, with
/// `equals`, if the interval contains that value.
struct Expectation {
  std::string metric;
  std::string variant;  ///< "": every variant
  std::string of;       ///< a variant: its figure divides the figure, replication by replication
  std::string at;       ///< a value of the only sweep; "": every one
  std::vector<Setting> at_values;  ///< values of sweeps: each point that has them all
  std::optional<double> least;
  std::optional<double> most;
  std::optional<double> equals;
  double within = 0;  ///< by how much the interval may miss `equals`
  std::string where;  ///< "file:line"
};

/// What the judges look for, besides what they always do.
struct JudgeOptions {
  Span recovery{0};  ///< within so long after the last fault, 99 % of the goodput; zero: not judged
  std::vector<std::string> sometimes;  ///< events that must happen in some replication
  std::vector<std::string> never;      ///< events that must happen in none
};

struct Study {
  std::string name;
  std::string question;
  std::string description;
  std::vector<std::string> notes;
  std::uint64_t seed = 1;
  std::size_t replications = 30;
  double confidence = 0.99;
  double precision = 0;  ///< half the interval of the first headline figure, of its mean; 0: none
  std::vector<Setting> settings;
  std::vector<Variant> variants;  ///< at least one; its name may be ""
  std::vector<Sweep> sweeps;      ///< their grid: each value of one with each of the others
  std::vector<FaultPlan> faults;
  std::vector<Expectation> expectations;
  JudgeOptions judges;
  std::vector<std::string> headline{"share_429", "wait_p99", "goodput", "recovery", "ops_per_call"};

  std::vector<std::string> warnings;  ///< about the files of traces
  std::shared_ptr<TraceFiles> traces = std::make_shared<TraceFiles>();

  /// Points of the grid, 1 without a sweep. The last sweep's value changes first.
  [[nodiscard]] std::size_t points() const noexcept;
  /// Which value of a sweep a point has.
  [[nodiscard]] const Texts& value(std::size_t sweep, std::size_t point) const;
  [[nodiscard]] std::string value_text(std::size_t sweep, std::size_t point) const;
  /// The value of the only sweep; of several, with their names: "arrivals.load = 2, jobs.keys = 5".
  [[nodiscard]] std::string point_text(std::size_t point) const;
  /// The same, with the name of the only sweep too; "" without a sweep.
  [[nodiscard]] std::string point_name(std::size_t point) const;
  /// Whether something is expected at a point.
  [[nodiscard]] bool concerns(const Expectation& expectation, std::size_t point) const;
  /// A variant at a point, for people: " (variant "a") (arrivals.load = 2)".
  [[nodiscard]] std::string row_text(std::size_t variant, std::size_t point) const;
  /// Whether pilots find the warm-up of a row.
  [[nodiscard]] bool has_automatic_warm_up() const;
  /// What a row sets: for each parameter the last of what the file, the variant, --set and the
  /// sweeps say.
  [[nodiscard]] std::vector<Setting> in_force(std::size_t variant, std::size_t point) const;
  /// Without what does nothing in this row: a variant may disable what another one uses. Throws
  /// std::invalid_argument. REQUIRES: indices of a variant and of a point.
  [[nodiscard]] Scenario scenario(std::size_t variant, std::size_t point) const;
};

/// A setting, sweep or fault that changes nothing in any row in which it is in force.
struct Idle {
  std::string where;
  std::string why;
};
/// The first one, if there is one, of those for which `asked` is true of their places; of faults,
/// of `fault_places`.
[[nodiscard]] std::optional<Idle> find_idle(const Study& study,
                                            const std::function<bool(const std::string&)>& asked,
                                            const std::vector<std::string>& fault_places = {});

/// Drops what does nothing from a study of one run.
void drop_idle(Study& single);

/// The most points that several sweeps may have together.
inline constexpr std::size_t most_points = 1000;

/// Reads a file and what it includes, then applies `overrides` ("path=value"). Throws
/// std::invalid_argument with file, line, reason and, for a name that does not exist, the nearest;
/// also for what the file, without what it includes, or an override sets and what does nothing.
[[nodiscard]] Study load_study(const std::filesystem::path& file,
                               const std::vector<std::string>& overrides = {});

/// A study of one run as a file without includes: it replays that run alone. REQUIRES: it has one
/// variant without settings, no sweep and no expectations, as single_run() makes it.
[[nodiscard]] std::string to_toml(const Study& study, std::string_view revision);

}  // namespace sluice::sim::scenario
