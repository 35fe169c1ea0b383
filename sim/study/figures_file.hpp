// The file of a scenario's figures in the repository, whose changes a review sees. Threading: pure.
#pragma once

#include <filesystem>
#include <string>

#include "sim/study/study_run.hpp"

namespace sluice::sim::scenario {

/// Writes it. Throws std::runtime_error.
void write_figures(const StudyResult& result, const std::filesystem::path& file);

enum class Compared { all, traces };

/// What is different from the file, a line for each figure; "" if nothing is. The figures are
/// compared as texts of six digits, because they are the same on every machine. The traces alone
/// are known after one replication.
[[nodiscard]] std::string changed(const StudyResult& result, const std::filesystem::path& file,
                                  Compared compared = Compared::all);

}  // namespace sluice::sim::scenario
