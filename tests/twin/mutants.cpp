#include "tests/twin/mutants.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

namespace sluice::test {
namespace {

namespace fs = std::filesystem;

const std::string folder = "tests/twin/mutants";
constexpr std::string_view kernel_mark = "kernel ";

std::string_view trim(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

[[noreturn]] void fail(const std::string& file, int line, const std::string& message) {
  throw std::runtime_error(file + ":" + std::to_string(line) + ": " + message);
}

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

bool is_section(std::string_view line) {
  const auto space = line.find(' ');
  const std::string_view kind = line.substr(0, space);
  const std::string_view name = space == line.npos ? std::string_view() : line.substr(space + 1);
  if (name.empty() || name.find(' ') != name.npos) return false;
  return kind == "piece" || kind == "operation" || kind == "fast" || kind == "fast_plan" ||
         kind == "kernel";
}

/// The code that is written so: with lines, each without its indentation.
std::string unescape(std::string_view written, const std::string& file, int line) {
  std::string code;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] != '\\') {
      code += written[i];
      continue;
    }
    const std::string_view escape = written.substr(i++, 2);
    if (escape != "\\n" && escape != "\\\\") {
      fail(file, line, in_quotes(escape) + " is no escape: allowed are \\n and \\\\");
    }
    code += escape == "\\n" ? '\n' : '\\';
  }
  return without_indentation(code);
}

/// The bug of an indented line.
Mutant parse_bug(std::string_view line, const std::string& file, int number) {
  const std::string text(line);
  const auto colon = text.find(": ");
  const auto arrow = colon == text.npos ? colon : text.find(" =>", colon + 1);
  if (arrow == text.npos || text.find(" =>", arrow + 1) != text.npos) {
    fail(file, number, "expected \"name: code => code\", got " + in_quotes(text));
  }
  Mutant mutant{.file = file,
                .line = number,
                .section = {},
                .name = text.substr(0, colon),
                .from = unescape(trim(line.substr(colon + 1, arrow - colon - 1)), file, number),
                .to = unescape(trim(line.substr(arrow + 3)), file, number)};
  if (mutant.from.empty()) fail(file, number, "no code to replace: " + in_quotes(text));
  if (mutant.from == mutant.to) fail(file, number, "changes nothing: " + in_quotes(text));
  return mutant;
}

/// The section's text with the bug.
std::string replace(const std::string& text, const Mutant& mutant) {
  const auto at = text.find(mutant.from);
  if (at == text.npos || text.find(mutant.from, at + 1) != text.npos) {
    fail(mutant.file, mutant.line,
         "must stand exactly once in " + in_quotes(mutant.section) + ": " + in_quotes(mutant.from));
  }
  return text.substr(0, at) + mutant.to + text.substr(at + mutant.from.size());
}

}  // namespace

std::string Mutant::kernel() const {
  return section.starts_with(kernel_mark) ? section.substr(kernel_mark.size()) : std::string();
}

std::vector<Mutant> parse_mutants(const std::string& file, std::string_view text) {
  std::vector<Mutant> mutants;
  std::set<std::string, std::less<>> sections;
  std::string section;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    const std::string_view line = trim(whole);
    if (line.empty() || line.starts_with('#')) continue;
    if (whole.starts_with(' ')) {
      if (section.empty()) fail(file, number, "no section above " + in_quotes(line));
      mutants.push_back(parse_bug(line, file, number));
      mutants.back().section = section;
      continue;
    }
    if (!is_section(line)) {
      fail(
          file, number,
          "expected piece, operation, fast, fast_plan or kernel with one name, or an indented bug, "
          "got " +
              in_quotes(line));
    }
    section = line;
    if (!sections.insert(section).second) {
      fail(file, number, "a second section " + in_quotes(section));
    }
  }
  return mutants;
}

std::vector<Mutant> read_mutants() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(SLUICE_SOURCE_DIR) / folder)) {
    names.insert(entry.path().filename().string());
  }
  std::vector<Mutant> all;
  for (const std::string& name : names) {
    const auto some = parse_mutants(name, read_source(folder + "/" + name));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

LuaFiles plant(const LuaFiles& files, const Mutant& mutant) {
  const std::string rule = fs::path(mutant.file).stem().string();
  std::string there;
  for (const LuaSection& section : sections_of(files)) {
    if (section.rule() != rule) continue;
    if (section.name != mutant.section) {
      there += (there.empty() ? "" : ", ") + section.name;
      continue;
    }
    const std::string& text = files.at(section.file);
    const std::string body = text.substr(section.begin, section.end - section.begin);
    LuaFiles planted = files;
    planted.at(section.file) = text.substr(0, section.begin) +
                               replace(without_indentation(body), mutant) +
                               text.substr(section.end);
    return planted;
  }
  fail(mutant.file, mutant.line,
       rule + ".lua has no section " + in_quotes(mutant.section) + " but: " + there);
}

std::string kernel_source(const std::string& path) {
  std::string text = read_source(path);
  const std::string header = path.substr(0, path.rfind('.')) + "_kernel.hpp";
  const std::string line = "#include \"" + header + "\"\n";
  if (const auto at = text.find(line); at != text.npos) {
    text.replace(at, line.size(), read_source(header));
  }
  return text;
}

std::string plant_in_kernel(const Mutant& mutant) {
  return replace(without_indentation(kernel_source(mutant.kernel())), mutant);
}

std::vector<std::string> unplanted(const LuaFiles& files, std::span<const Mutant> mutants) {
  std::vector<std::string> left;
  for (const LuaSection& section : sections_of(files)) {
    if (std::ranges::find(mutants, section.name, &Mutant::section) == mutants.end()) {
      left.push_back(section.file + ": " + section.name);
    }
  }
  return left;
}

}  // namespace sluice::test
