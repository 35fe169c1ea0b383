// The limits of keys by a list in a TOML file, as the component config reads it. Threading: any.
#pragma once

#include <string>

#include "tool/describe.hpp"

namespace sluice::tool {

/// False in a build without the component config (SLUICE_CONFIG).
[[nodiscard]] bool has_tables() noexcept;

/// Given::fill by the list that "limits.toml:api" names: its quotas for token buckets, its counts
/// for fixed windows, counters and leases, its windows for sliding windows. Throws
/// std::invalid_argument for another form, and std::runtime_error, which names the file and the
/// line, for a list of no limiter.
[[nodiscard]] decltype(Given::fill) read_table(const std::string& file_and_name);

}  // namespace sluice::tool
