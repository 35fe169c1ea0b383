// Reads and joins the Lua fragments.
#include "tests/twin/scripts.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace sluice::test {
namespace {

const std::string lua_folder = "backends/redis/lua";

}  // namespace

const std::string_view driven_clock = R"(
local now = tonumber(ARGV[#ARGV])
)";

std::string read_source(const std::string& path) {
  std::ifstream file(std::string(SLUICE_SOURCE_DIR) + "/" + path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Fragments read_fragments() {
  Fragments fragments;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(SLUICE_SOURCE_DIR) + "/" + lua_folder)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(".lua")) fragments[name] = read_source(lua_folder + "/" + name);
  }
  return fragments;
}

ScriptTables read_script_tables() {
  ScriptTables tables;
  const std::string text = read_source("backends/redis/CMakeLists.txt");
  const std::regex form("\"([a-z]+):((?: [a-z_]+[.]lua| QUICK| RULE| (?:CELL_)?RULES)+)\"");
  const std::sregex_iterator end;
  for (std::sregex_iterator it(text.begin(), text.end(), form); it != end; ++it) {
    std::istringstream names((*it)[2].str());
    tables.forms.push_back({(*it)[1].str(), {std::istream_iterator<std::string>(names), {}}});
  }
  const std::regex rule("\"([a-z_]+) ([0-9]+) ([a-z]+)((?: [a-z_]+)*)\"");
  for (std::sregex_iterator it(text.begin(), text.end(), rule); it != end; ++it) {
    std::istringstream shared((*it)[4].str());
    tables.rules.push_back({(*it)[1].str(),
                            std::stoi((*it)[2].str()),
                            (*it)[3].str(),
                            {std::istream_iterator<std::string>(shared), {}}});
  }
  if (tables.forms.empty() || tables.rules.empty()) throw std::runtime_error("no table of scripts");
  return tables;
}

namespace {

std::string text_of(const Fragments& fragments, const ScriptTables::Rule& rule) {
  std::string text = fragments.at(rule.name + ".lua");
  for (const std::string& stem : rule.shared) {
    const std::string place = "-- SHARED " + stem + "\n";
    const std::size_t at = text.find(place);
    const bool before = at == std::string::npos;
    text.replace(before ? 0 : at, before ? 0 : place.size(), fragments.at(stem + ".lua"));
  }
  return text;
}

/// The function rule(id) of the scripts for plans.
std::string join_rules(const Fragments& fragments, const ScriptTables& tables, bool all) {
  static const std::map<std::string, std::string> answers{
      {"lean", "return KIND, ARGUMENTS, 0, nil, decide\n"},
      {"terse", "return KIND, ARGUMENTS, 0, nil, decide\n"},
      {"cell", "return KIND, ARGUMENTS, DETAILS, nil, decide\n"},
      {"brief", "return KIND, ARGUMENTS, DETAILS, HEAD, decide\n"},
      {"wide", "return KIND, ARGUMENTS, DETAILS, HEAD, decide\n"}};
  std::string text = "local function rule(id)\n";
  std::string word = "if";
  for (const auto& rule : tables.rules) {
    if (!all && (rule.form == "wide" || rule.form == "brief")) continue;
    text += word + " id == " + std::to_string(rule.id) + " then\n" + text_of(fragments, rule) +
            answers.at(rule.form);
    word = "elseif";
  }
  return text + "end\nend\n\n";
}

}  // namespace

Scripts join(const Fragments& fragments, const std::vector<ScriptTables::Rule>& more) {
  Scripts scripts;
  ScriptTables tables = read_script_tables();
  tables.rules.insert(tables.rules.end(), more.begin(), more.end());
  for (const auto& form : tables.forms) {
    const bool for_plans = std::ranges::any_of(
        form.fragments, [](const std::string& name) { return name.ends_with("RULES"); });
    const auto add = [&](const std::string& name, const ScriptTables::Rule& rule) {
      for (const std::string& fragment : form.fragments) {
        scripts[name] += fragment.ends_with("RULES")
                             ? join_rules(fragments, tables, fragment == "RULES")
                         : fragment == "RULE"  ? text_of(fragments, rule)
                         : fragment == "QUICK" ? fragments.at(name + "_quick.lua")
                                               : fragments.at(fragment);
      }
    };
    if (for_plans) add(form.name, {});
    for (const auto& rule : tables.rules) {
      if (rule.form == form.name) add(rule.name, rule);
    }
  }
  return scripts;
}

namespace {

bool is_any_rule(const auto& predicate) {
  static const ScriptTables tables = read_script_tables();
  return std::ranges::any_of(tables.rules, predicate);
}

}  // namespace

bool shares(std::string_view name, std::string_view fragment) {
  return is_any_rule([&](const ScriptTables::Rule& rule) {
    return rule.name == name && std::ranges::any_of(rule.shared, [&](const std::string& stem) {
             return stem + ".lua" == fragment;
           });
  });
}

bool is_single(std::string_view name) {
  return is_any_rule([&](const ScriptTables::Rule& rule) {
    return rule.name == name && (rule.form == "terse" || rule.form == "brief");
  });
}

std::map<std::string, std::size_t, std::less<>> read_heads(const Scripts& scripts) {
  std::map<std::string, std::size_t, std::less<>> heads;
  const std::regex naming(
      "local KIND, ARGUMENTS, HEAD, DETAILS, decide = [0-9]+, '[<i8]*', ([0-9]+)");
  for (const auto& [name, text] : scripts) {
    std::smatch found;
    if (name != "mixed" && name != "once" && std::regex_search(text, found, naming)) {
      heads[name] = std::stoul(found[1].str());
    }
  }
  return heads;
}

std::string replace_once(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    throw std::runtime_error("must stand exactly once in the source: " + std::string(from));
  }
  return text.substr(0, at) + std::string(to) + text.substr(at + from.size());
}

}  // namespace sluice::test
