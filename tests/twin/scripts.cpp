// Reads and joins the Lua fragments.
#include "tests/twin/scripts.hpp"

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

std::vector<ScriptRow> read_script_table() {
  std::vector<ScriptRow> table;
  const std::string text = read_source("backends/redis/CMakeLists.txt");
  const std::regex row("\"([a-z0-9_]+):((?:[ \n]+[a-z0-9_/.]+[.]lua)+)\"");
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    std::istringstream names((*it)[2].str());
    table.push_back({(*it)[1].str(), {std::istream_iterator<std::string>(names), {}}});
  }
  if (table.empty()) throw std::runtime_error("no table of scripts found");
  return table;
}

std::map<std::string, std::string, std::less<>> join(const Fragments& fragments) {
  std::map<std::string, std::string, std::less<>> scripts;
  for (const ScriptRow& row : read_script_table()) {
    for (const std::string& name : row.fragments) scripts[row.name] += fragments.at(name);
  }
  return scripts;
}

std::string replace_once(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    throw std::runtime_error("must stand exactly once in the source: " + std::string(from));
  }
  return text.substr(0, at) + std::string(to) + text.substr(at + from.size());
}

}  // namespace sluice::test
