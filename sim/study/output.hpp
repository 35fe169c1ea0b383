// The results of a study as JSON, CSV, HTML and as text for a terminal. Threading: pure.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sim/study/study_run.hpp"

namespace sluice::sim::scenario {

/// The whole result, in the format that the report's page reads; see docs/simulation.md.
[[nodiscard]] std::string to_json(const StudyResult& result, const std::string& command);

/// The revision of the sources.
[[nodiscard]] std::string_view revision();

/// A line for each variant, value of the sweep and metric: its mean and interval.
[[nodiscard]] std::string figures_csv(const StudyResult& result);
/// A line for each step of time of the first replication.
[[nodiscard]] std::string series_csv(const StudyResult& result);

/// The page with the result in it. Throws std::runtime_error if `page` cannot be read or has no
/// place for the result.
[[nodiscard]] std::string to_html(const std::string& json, const std::filesystem::path& page);

/// Tables of the headline figures, the verdicts and the judges.
[[nodiscard]] std::string to_text(const StudyResult& result);

/// Writes a file beside its place first, so that nothing half-written is ever seen there. Throws
/// std::runtime_error with the path and the reason.
void write_file(const std::filesystem::path& path, const std::string& text);

/// "12.3 ±0.4 ms", "0.04 (0 to 0.1) %" where the interval is cut to what is possible, "7 s (1 of 30
/// runs)", "not in 3 of 30 runs", "-".
[[nodiscard]] std::string figure_text(const Estimate& value, std::string_view unit);

}  // namespace sluice::sim::scenario
