// The Lua scripts as the build joins them, with fragments that a test may exchange.
// Threading: plain values.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

/// The fragments of backends/redis/lua, by file name.
using Fragments = std::map<std::string, std::string, std::less<>>;

/// Reads them all. Throws std::runtime_error if a file cannot be read.
[[nodiscard]] Fragments read_fragments();

/// One row of the table in backends/redis/CMakeLists.txt.
struct ScriptRow {
  std::string name;
  std::vector<std::string> fragments;
};

/// The table, as the build reads it.
[[nodiscard]] std::vector<ScriptRow> read_script_table();

/// Each script's text by its name, joined as the build does it.
[[nodiscard]] std::map<std::string, std::string, std::less<>> join(const Fragments& fragments);

/// A clock.lua that takes the time from the last argument, so that a test drives it.
extern const std::string_view driven_clock;

/// The text of a file below the source tree's root.
[[nodiscard]] std::string read_source(const std::string& path);

/// `text` with `from`, which must stand in it exactly once, replaced by `to`. Throws
/// std::runtime_error otherwise: a mutation that plants nothing proves nothing.
[[nodiscard]] std::string replace_once(const std::string& text, std::string_view from,
                                       std::string_view to);

}  // namespace sluice::test
