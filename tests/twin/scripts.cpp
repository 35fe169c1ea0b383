// Reads and joins the Lua files.
#include "tests/twin/scripts.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

#include "backends/redis/scripts/script_joiner.hpp"
#include "tests/twin/wire.hpp"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;

const std::string lua_folder = "backends/redis/lua";

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

Heads read_heads(const Scripts& scripts) {
  Heads heads;
  const std::regex naming("local head_words = ([0-9]+)");
  for (const auto& [name, text] : scripts) {
    std::smatch found;
    if (std::regex_search(text, found, naming)) heads[name] = std::stoul(found[1].str());
  }
  return heads;
}

std::size_t head_of(const Heads& heads, const Operation& row) {
  const auto found = heads.find(script_name(row));
  return found == heads.end() ? 0 : found->second;
}

void drive_clock(LuaFiles& files) {
  files.at("clock.lua") = "--@ piece clock\nlocal now = tonumber(ARGV[#ARGV])\n";
}

std::string LuaSection::rule() const { return fs::path(file).stem().string(); }

std::vector<LuaSection> sections_of(const LuaFiles& files) {
  static const std::regex heading("--@ +((piece|operation|fast|fast_plan) +([a-z_0-9]+))");
  std::vector<LuaSection> sections;
  for (const auto& [name, text] : files) {
    LuaSection* last = nullptr;
    for (std::sregex_iterator found(text.begin(), text.end(), heading), none; found != none;
         ++found) {
      const auto begin = static_cast<std::size_t>(found->position());
      if (last != nullptr) last->end = begin;
      last = &sections.emplace_back(
          LuaSection{(*found)[2].str() + ' ' + (*found)[3].str(), name, begin, text.size()});
    }
  }
  return sections;
}

std::string rule_of_section(const LuaFiles& files, std::string_view section) {
  const auto sections = sections_of(files);
  const auto found = std::ranges::find(sections, section, &LuaSection::name);
  if (found == sections.end()) throw std::runtime_error("no section: " + std::string(section));
  return found->rule();
}

std::string without_indentation(std::string_view text) {
  std::string lines;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ' || (!lines.empty() && lines.back() != '\n')) lines += text[i];
  }
  return lines;
}

}  // namespace sluice::test
