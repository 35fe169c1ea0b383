// The events of one run as a file. Threading: one thread.
#pragma once

#include <atomic>
#include <filesystem>

#include "sim/study/study.hpp"

namespace sluice::sim::scenario {

/// Runs the first row of a study once and writes what happens to its jobs, and its faults: a JSON
/// object a line if the name of the file ends in .jsonl, else the format of Chrome's traces, which
/// https://ui.perfetto.dev opens: a process for each worker, a slice for each job, with its calls
/// in it. Returns "", or what ended the run at an instant without end. Throws std::runtime_error if
/// the file cannot be written, and Stopped once `stop` is set; nothing half-written is left.
[[nodiscard]] std::string write_trace(const Study& study, const std::filesystem::path& path,
                                      const std::atomic<bool>* stop = nullptr);

}  // namespace sluice::sim::scenario
