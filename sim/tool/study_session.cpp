#include "sim/tool/study_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>

#include "cli/text.hpp"
#include "sim/scenario/text.hpp"
#include "sim/study/new_file.hpp"
#include "sim/tool/study_commands.hpp"

namespace sluice::tool {
namespace {

using namespace sim::scenario;
namespace fs = std::filesystem;

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

void on_interrupt(int) { stop.store(true); }

/// Beside the program, as installed, or else where the program was built.
fs::path data_folder(const char* installed, const char* built) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = program.parent_path().parent_path() / "share" / "sluice" / installed;
  return !error && fs::exists(beside, error) ? beside : fs::path(built);
}

/// Makes a folder, into which files can be written. Throws std::runtime_error.
void prepare_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw std::runtime_error(folder.string() + ": cannot be made: " + error.message());
  }
  const NewFile file(folder / "result.json");  // which is not committed, and leaves nothing
}

std::string progress_line(const Study& study, const StudyProgress& progress, Span elapsed) {
  std::string line =
      fmt::format("{}: {} of {} runs, {} of {}, {} events", study.name, progress.done, progress.all,
                  duration(progress.reached), duration(study.scenario(0, 0).duration),
                  rate(progress.events, elapsed));
  if (progress.done != 0) {
    const Span left = elapsed * static_cast<Word>(progress.all - progress.done) /
                      static_cast<Word>(progress.done);
    line += ", " + duration(left) + " left";
  }
  return line;
}

}  // namespace

fs::path scenario_folder() { return data_folder("scenarios", SLUICE_SCENARIOS); }

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(scenario_folder())) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Study load(const SessionOptions& options) {
  std::error_code error;
  fs::path file = options.scenario;
  if (!fs::exists(file, error)) {
    file = scenario_folder() / (options.scenario + ".toml");
    if (!fs::exists(file, error)) {
      const auto names = scenario_names();
      const std::vector<std::string_view> views(names.begin(), names.end());
      throw std::invalid_argument(
          fmt::format("there is no scenario or file \"{}\"{}; see sluice-sim list",
                      options.scenario, did_you_mean(options.scenario, views)));
    }
  }
  Study study = load_study(file, options.sets);
  if (options.seed) study.seed = *options.seed % static_cast<std::uint64_t>(word_limit);
  if (options.replications != 0) study.replications = options.replications;
  if (options.precision != 0) study.precision = options.precision;
  for (const std::string& warning : study.warnings) fmt::print(stderr, "WARNING: {}\n", warning);
  if (!options.output.empty()) prepare_folder(options.output);
  return study;
}

Interruption::Interruption() { std::signal(SIGINT, on_interrupt); }
Interruption::~Interruption() { std::signal(SIGINT, SIG_DFL); }
const std::atomic<bool>* Interruption::stop() const noexcept { return &tool::stop; }

StudyResult run_with_progress(const Study& study, const SessionOptions& options) {
  const Interruption interruption;
  Progress progress;
  StudyOptions how{.jobs = options.jobs, .stop = interruption.stop(), .progress = {}};
  how.progress = [&](const StudyProgress& reached) {
    if (progress.due()) progress.show(progress_line(study, reached, progress.elapsed()));
  };
  return run_study(study, how);
}

void report(const StudyResult& result, const SessionOptions& options, const std::string& command) {
  if (result.replications == 0) {
    fmt::print(stderr, "stopped before the first replication was done: there is nothing to show\n");
    return;
  }
  const std::string json = to_json(result, command);
  fmt::print("{}", options.json ? json : to_text(result));
  if (options.output.empty()) return;
  const fs::path folder = options.output;
  prepare_folder(folder);
  write_file(folder / "result.json", json);
  write_file(folder / "figures.csv", figures_csv(result));
  write_file(folder / "series.csv", series_csv(result));
  const fs::path page = data_folder("report.html", SLUICE_REPORT);
  std::error_code error;
  if (fs::exists(page, error)) {
    write_file(folder / "report.html", to_html(json, page));
    fmt::print(stderr, "wrote {}\n", (folder / "report.html").string());
  } else {
    fmt::print(stderr, "wrote {} without report.html: the page was not built (./dev report)\n",
               folder.string());
  }
}

bool was_interrupted() { return stop.load(); }

int exit_code(const StudyResult& result) {
  if (was_interrupted()) return interrupted;
  switch (result.status()) {
    case Status::holds:
      return held;
    case Status::fails:
      return objected;
    default:
      return undecided;
  }
}

}  // namespace sluice::tool
