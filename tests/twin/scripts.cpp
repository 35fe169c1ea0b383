// Reads and joins the Lua files.
#include "tests/twin/scripts.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <vector>

#include "backends/redis/script_joiner.hpp"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;

const std::string lua_folder = "backends/redis/lua";

/// Where a section stands: the file, and its begin and end there.
struct Place {
  LuaFiles::const_iterator file;
  std::size_t begin;
  std::size_t end;
};

Place find_section(const LuaFiles& files, std::string_view section) {
  static const std::regex any_section("--@ (piece|operation|fast) [a-z]");
  const std::string start = "--@ " + std::string(section);
  for (auto file = files.begin(); file != files.end(); ++file) {
    const std::string& text = file->second;
    for (auto at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
      const char next = text[at + start.size()];
      if (next != '\n' && next != '(') continue;
      std::smatch found;
      const auto behind = text.begin() + static_cast<std::ptrdiff_t>(at + start.size());
      const bool is_last = !std::regex_search(behind, text.end(), found, any_section);
      return {
          file, at,
          is_last ? text.size() : at + start.size() + static_cast<std::size_t>(found.position())};
    }
  }
  throw std::runtime_error("no section: " + std::string(section));
}

}  // namespace

std::string read_source(const std::string& path) {
  std::ifstream file(std::string(SLUICE_SOURCE_DIR) + "/" + path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

LuaFiles read_lua_files() {
  LuaFiles files;
  const fs::path folder = fs::path(SLUICE_SOURCE_DIR) / lua_folder;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".lua") continue;
    const std::string name = entry.path().lexically_relative(folder).generic_string();
    files[name] = read_source(lua_folder + "/" + name);
  }
  return files;
}

Scripts join(const LuaFiles& files, std::span<const Operation* const> more) {
  std::vector<redis_detail::LuaFile> texts;
  for (const auto& [name, text] : files) texts.push_back({name, text});
  std::vector<const Operation*> all(operations().begin(), operations().end());
  all.insert(all.end(), more.begin(), more.end());
  const redis_detail::ScriptJoiner joiner(texts, all);

  const auto any_windows = redis_detail::ScriptJoiner::WindowCounts().set();
  Scripts scripts;
  std::vector<const Operation*> fixed;
  std::vector<const Operation*> variable;
  for (const Operation* each : all) {
    scripts[redis_detail::ScriptJoiner::stem_of(*each)] = joiner.step(*each, any_windows);
    (is_cell(each->kind) ? fixed : variable).push_back(each);
  }
  for (const Operation* each : fixed) {
    scripts["plan_of_" + redis_detail::ScriptJoiner::stem_of(*each)] =
        joiner.plan({&each, 1}, false, any_windows);
  }
  scripts["plan"] = joiner.plan(all, false, any_windows);
  scripts["fixed_plan"] = joiner.plan(fixed, false, any_windows);
  scripts["variable_plan"] = joiner.plan(variable, false, any_windows);
  scripts["idempotent_plan"] = joiner.plan(all, true, any_windows);
  return scripts;
}

std::map<std::string, std::size_t, std::less<>> read_heads(const Scripts& scripts) {
  std::map<std::string, std::size_t, std::less<>> heads;
  const std::regex naming("local head_words = ([0-9]+)");
  for (const auto& [name, text] : scripts) {
    std::smatch found;
    if (std::regex_search(text, found, naming)) heads[name] = std::stoul(found[1].str());
  }
  return heads;
}

void drive_clock(LuaFiles& files) {
  files.at("clock.lua") = "--@ piece clock\nlocal now = tonumber(ARGV[#ARGV])\n";
}

void replace_in_section(LuaFiles& files, std::string_view section, std::string_view from,
                        std::string_view to) {
  const Place place = find_section(files, section);
  const std::string& text = place.file->second;
  const std::string changed =
      replace_once(text.substr(place.begin, place.end - place.begin), from, to);
  files.at(place.file->first) = text.substr(0, place.begin) + changed + text.substr(place.end);
}

std::string rule_of_section(const LuaFiles& files, std::string_view section) {
  return fs::path(find_section(files, section).file->first).stem().string();
}

std::string replace_once(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    throw std::runtime_error("must stand exactly once in the source: " + std::string(from));
  }
  return text.substr(0, at) + std::string(to) + text.substr(at + from.size());
}

}  // namespace sluice::test
