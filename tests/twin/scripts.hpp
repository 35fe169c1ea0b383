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

/// The tables in backends/redis/CMakeLists.txt, as the build reads them.
struct ScriptTables {
  struct Form {
    std::string name;
    std::vector<std::string> fragments;  // RULE and RULES among them
  };
  struct Rule {
    std::string name;
    int id;
    std::string form;
    std::vector<std::string> shared{};  // the stems of what it is made of besides
  };
  std::vector<Form> forms;
  std::vector<Rule> rules;
};
[[nodiscard]] ScriptTables read_script_tables();

using Scripts = std::map<std::string, std::string, std::less<>>;

/// Each script's text by its name, joined as the build does it, with more rules if a test has some.
[[nodiscard]] Scripts join(const Fragments& fragments,
                           const std::vector<ScriptTables::Rule>& more = {});

/// True if the rule of this name is made of this fragment too, which it shares with others.
[[nodiscard]] bool shares(std::string_view name, std::string_view fragment);

/// True if the script of one step takes its request as one argument, which ends in the time to
/// live.
[[nodiscard]] bool is_single(std::string_view name);

/// How many words of a wide state the driver looks at before the rule, by the script's name.
[[nodiscard]] std::map<std::string, std::size_t, std::less<>> read_heads(const Scripts& scripts);

/// A clock.lua that takes the time from the last argument, so that a test drives it.
extern const std::string_view driven_clock;

/// The text of a file below the source tree's root.
[[nodiscard]] std::string read_source(const std::string& path);

/// `text` with `from`, which must stand in it exactly once, replaced by `to`. Throws
/// std::runtime_error otherwise: a mutation that plants nothing proves nothing.
[[nodiscard]] std::string replace_once(const std::string& text, std::string_view from,
                                       std::string_view to);

}  // namespace sluice::test
