// The Lua scripts as the store joins them, from files of which a test may exchange parts.
// Threading: plain values.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/extend/operation.hpp"

namespace sluice::test {

/// The files below backends/redis/lua, by their names there.
using LuaFiles = std::map<std::string, std::string, std::less<>>;

/// Reads them all. Throws std::runtime_error if a file cannot be read.
[[nodiscard]] LuaFiles read_lua_files();

using Scripts = std::map<std::string, std::string, std::less<>>;

/// The script of each operation by its stem; the plans of all operations, of all over fixed and of
/// all over variable states, "plan", "fixed_plan" and "variable_plan"; those of each over fixed
/// states alone, "plan_of_<stem>"; and the first with a record, "idempotent_plan". `more`:
/// operations besides operations().
[[nodiscard]] Scripts join(const LuaFiles& files, std::span<const Operation* const> more = {});

/// How many words of a variable state the driver looks at before the rule, by the script's name.
using Heads = std::map<std::string, std::size_t, std::less<>>;
[[nodiscard]] Heads read_heads(const Scripts& scripts);
[[nodiscard]] std::size_t head_of(const Heads& heads, const Operation& row);

/// Makes the scripts take the time from their last argument, so that a test drives it.
void drive_clock(LuaFiles& files);

/// A section of a Lua file, from the line that begins with "--@ `name`" to the next one.
struct LuaSection {
  std::string name;  // "piece leases_base"
  std::string file;  // "rules/leases.lua"
  std::size_t begin;
  std::size_t end;

  /// The file's name without folder and extension.
  [[nodiscard]] std::string rule() const;
};

/// The sections of all files, file by file, as they stand there.
[[nodiscard]] std::vector<LuaSection> sections_of(const LuaFiles& files);

/// The name of the rule's file, without folder and extension, that has the section.
[[nodiscard]] std::string rule_of_section(const LuaFiles& files, std::string_view section);

/// The text without the spaces at the beginnings of its lines.
[[nodiscard]] std::string without_indentation(std::string_view text);

/// The text of a file below the source tree's root.
[[nodiscard]] std::string read_source(const std::string& path);

}  // namespace sluice::test
