// The command `sluice-sim log`. Threading: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::tool {

/// What the user asked for.
struct LogOptions {
  std::string file;                 ///< "-" is the standard input
  std::vector<std::string> quotas;  ///< each may hold several, separated by commas
  std::int64_t burst = 0;           ///< of quotas that name none; 0: as many as the quota's count
  std::size_t top = 10;
};

inline constexpr std::size_t most_quotas = 16;

/// The quotas that are compared if the user named none: each with its own burst, or without any if
/// the user asked for one.
[[nodiscard]] std::vector<std::string> default_quotas(bool with_burst = true);

/// Prints the report on the standard output. Throws std::invalid_argument if the options make no
/// sense, std::runtime_error if there was nothing to read.
void run_log(const LogOptions& options);

}  // namespace sluice::tool
