// The names of the calls of all limiters, as headers and a guide have them. Threading: none of its
// own.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "tests/catch.hpp"

namespace sluice::test {

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

using Names = std::set<std::pair<std::string, std::string>>;

/// What `all` has and `some` has not, as text.
inline std::set<std::string> without(const Names& all, const Names& some) {
  std::set<std::string> texts;
  for (const auto& name : all) {
    if (!some.contains(name)) texts.insert(name.first + " of " + name.second);
  }
  return texts;
}

/// The public part of a class whose definition begins at `begin`.
inline std::string public_part(const std::string& text, std::size_t begin) {
  const auto end = std::min({text.find("\n private:", begin), text.find("\n protected:", begin),
                             text.find("\n};", begin)});
  return text.substr(begin, end - begin);
}
/// The names of the functions that have a form which fills an error_code.
inline std::set<std::string> calls_of(const std::string& text) {
  const std::string last = "std::error_code& error)";
  std::set<std::string> names;
  for (auto at = text.find(last); at != std::string::npos; at = text.find(last, at + 1)) {
    std::size_t opening = at;
    for (int depth = 1; depth > 0; depth += text[opening] == ')'   ? 1
                                            : text[opening] == '(' ? -1
                                                                   : 0)
      --opening;
    const auto begin = text.find_last_of(" \n", opening) + 1;
    names.insert(text.substr(begin, opening - begin));
  }
  return names;
}
/// The calls of every class in include/sluice/limiters that ask the store, but for those that have
/// no asynchronous form or another one, async_acquire().
inline Names names_in_headers() {
  const auto folder = std::filesystem::path(SLUICE_SOURCE) / "include/sluice/limiters";
  const std::string keyed = "KeyedLimiter";
  const std::set<std::string> left_out{"acquire", "acquire_steps", "peek_steps", "block_steps",
                                       "reward_steps"};
  std::map<std::string, std::set<std::string>> calls;
  std::set<std::string> are_keyed;
  const std::regex definition(R"(\nclass (\[\[nodiscard\]\] )?(\w+)( [^;{]*)?\{)");
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    const std::string text = text_of(file.path());
    for (std::sregex_iterator each(text.begin(), text.end(), definition), end; each != end;
         ++each) {
      const auto begin = static_cast<std::size_t>(each->position() + each->length());
      calls[(*each)[2]] = calls_of(public_part(text, begin));
      if ((*each)[3].str().find(keyed) != std::string::npos) are_keyed.insert((*each)[2]);
    }
  }
  for (const std::string& limiter : are_keyed)
    calls[limiter].insert(calls[keyed].begin(), calls[keyed].end());
  calls.erase(keyed);
  Names names;
  for (const auto& [limiter, each] : calls)
    for (const std::string& call : each)
      if (!left_out.contains(call)) names.emplace("async_" + call, limiter);
  return names;
}

/// The rows of the table: | `Limiter` | `call(...)` | `step` | result |
inline Names names_in_table() {
  std::istringstream text(text_of(std::filesystem::path(SLUICE_SOURCE) / "docs/asio.md"));
  Names names;
  const std::regex row(R"(\| `(\w+)` \| `(\w+)\(.*)");
  std::smatch found;
  for (std::string line; std::getline(text, line);) {
    if (std::regex_match(line, found, row)) names.emplace("async_" + found[2].str(), found[1]);
  }
  return names;
}

}  // namespace sluice::test
