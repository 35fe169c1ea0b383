// StudySession: running a study for a person: progress, Ctrl-C, and the files of the report.
// Threading: main's thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/output.hpp"
#include "sim/study/study_run.hpp"

namespace sluice::tool {

/// The options that all commands share.
struct SessionOptions {
  std::string scenario;           ///< a name, or the path of a file
  std::vector<std::string> sets;  ///< "path=value"
  std::optional<std::uint64_t> seed{};
  std::size_t replications = 0;  ///< 0: as the file says
  double precision = 0;
  unsigned jobs = 0;
  std::string output;  ///< a folder for the report; "": none
  bool json = false;   ///< the result as JSON on the standard output
};

/// The folder of the scenarios that come with the program.
[[nodiscard]] std::filesystem::path scenario_folder();
/// The names of the scenarios in it, in order.
[[nodiscard]] std::vector<std::string> scenario_names();
/// Throws std::invalid_argument with the nearest name, and std::runtime_error if the folder of the
/// report cannot be written: nothing is run for it in vain.
[[nodiscard]] sim::scenario::Study load(const SessionOptions& options);

/// While one lives, Ctrl-C sets `stop` instead of ending the program.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();
  [[nodiscard]] const std::atomic<bool>* stop() const noexcept;
};

/// Runs with progress on stderr. Ctrl-C stops it: the result is partial then.
[[nodiscard]] sim::scenario::StudyResult run_with_progress(const sim::scenario::Study& study,
                                                           const SessionOptions& options);

/// Prints the tables, or JSON, and writes the files of the report.
void report(const sim::scenario::StudyResult& result, const SessionOptions& options,
            const std::string& command);

/// True once Ctrl-C was pressed.
[[nodiscard]] bool was_interrupted();

[[nodiscard]] int exit_code(const sim::scenario::StudyResult& result);

}  // namespace sluice::tool
