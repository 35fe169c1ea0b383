#include "backends/redis/scripts/script_joiner.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "backends/redis/scripts/script_constants.hpp"

namespace sluice::redis_detail {
namespace {

constexpr std::string_view mark = "--@ ";

std::string_view trim(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    if (const auto part = trim(text.substr(0, end)); !part.empty()) parts.push_back(part);
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The line without its comment; a line that is only a comment stays.
std::string_view without_comment(std::string_view line) noexcept {
  if (line.starts_with("--") && !line.starts_with(mark)) return {};
  return trim(line.substr(0, line.find(" -- ")));
}

/// The instruction of a line, or empty.
std::string_view instruction_in(std::string_view line) noexcept {
  line = trim(line);
  return line.starts_with(mark) ? line.substr(mark.size()) : std::string_view{};
}

/// The text after `word` and a space in the instruction, if it starts so.
std::optional<std::string_view> operand(std::string_view instruction,
                                        std::string_view word) noexcept {
  if (!instruction.starts_with(word) || instruction.substr(word.size(), 1) != " ") return {};
  return trim(instruction.substr(word.size()));
}

std::optional<int> to_number(std::string_view text) noexcept {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

bool is_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

[[noreturn]] void fail(std::string_view file, const std::string& message) {
  throw std::logic_error(std::string(file) + ": " + message);
}

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

bool is_flag(std::string_view name) {
  static constexpr std::array<std::string_view, 8> flags{
      "script", "fixed", "variable", "fast", "fast_plan", "output", "table", "record"};
  return std::ranges::find(flags, name) != flags.end();
}

/// The format of `words` words for Lua's struct library.
std::string format_of(std::size_t words) {
  std::string format = "<";
  while (words-- > 0) format += "i8";
  return format;
}

std::string joined(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

}  // namespace

struct ScriptJoiner::Scope {
  std::set<std::string_view> flags;
  const Operation* operation = nullptr;                    // the current one
  std::vector<const Operation*> all;                       // of a plan
  std::map<std::string_view, int, std::less<>> variables;  // of repeat blocks
  std::vector<std::string_view> uses;                      // the enclosing pieces
  WindowCounts windows = WindowCounts().set();
  bool in_body = false;  // of an operation, where instructions of drivers are invalid
};

std::string ScriptJoiner::stem_of(const Operation& operation) {
  std::string stem(operation.name);
  std::ranges::replace(stem, '.', '_');
  return stem;
}

ScriptJoiner::ScriptJoiner(std::span<const LuaFile> files,
                           std::span<const Operation* const> operations) {
  for (const LuaFile& file : files) read(file);
  for (const Operation* operation : operations) {
    if (!decides_.contains(stem_of(*operation))) continue;
    check(*operation);
    operations_.push_back(operation);
  }
  const auto is_known = [this](const std::string& stem) {
    return std::ranges::any_of(operations_, [&](auto* each) { return stem_of(*each) == stem; });
  };
  for (const Sections* sections : {&decides_, &fasts_, &fast_plans_}) {
    for (const auto& [stem, section] : *sections) {
      if (!is_known(stem)) fail(section.file, "there is no operation " + in_quotes(stem));
    }
  }
}

void ScriptJoiner::read(const LuaFile& file) {
  Section* section = nullptr;
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const std::string_view line = without_comment(trim(rest.substr(0, end)));
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    const std::string_view instruction = instruction_in(line);
    if (operand(instruction, "piece") || operand(instruction, "operation") ||
        operand(instruction, "fast") || operand(instruction, "fast_plan")) {
      section = &begin_section(file, instruction);
    } else if (!line.empty()) {
      if (section == nullptr)
        fail(file.name, "code in front of the first section: " + in_quotes(line));
      section->lines.push_back(line);
    }
  }
}

ScriptJoiner::Section& ScriptJoiner::begin_section(const LuaFile& file,
                                                   std::string_view instruction) {
  Section section;
  section.file = section.rule = file.name;
  section.rule = section.rule.substr(section.rule.rfind('/') + 1);
  section.rule = section.rule.substr(0, section.rule.find('.'));

  Sections* sections = &pieces_;
  std::string_view name;
  if (const auto piece = operand(instruction, "piece")) {
    name = *piece;
  } else if (const auto fast = operand(instruction, "fast")) {
    sections = &fasts_;
    name = *fast;
  } else if (const auto fast_plan = operand(instruction, "fast_plan")) {
    sections = &fast_plans_;
    name = *fast_plan;
  } else {
    sections = &decides_;
    const std::string_view text = *operand(instruction, "operation");
    const auto open = text.find('(');
    const auto bar = text.find('|');
    if (open == text.npos || bar == text.npos || bar < open || !text.ends_with(')')) {
      fail(file.name,
           "expected \"operation name(state | arguments)\", got " + in_quotes(instruction));
    }
    name = trim(text.substr(0, open));
    section.state = split(text.substr(open + 1, bar - open - 1), ',');
    section.arguments = split(text.substr(bar + 1, text.size() - bar - 2), ',');
    if (section.state.size() == 1 && section.state[0].starts_with("head[") &&
        section.state[0].ends_with(']')) {
      section.head = to_number(section.state[0].substr(5, section.state[0].size() - 6)).value_or(0);
      section.state.clear();
    }
    if (section.state.size() != 2 && (section.head < 1 || section.head > 32)) {
      fail(file.name, "a state is head[1] to head[32], or two words: " + in_quotes(instruction));
    }
  }
  const auto [place, is_new] = sections->emplace(name, std::move(section));
  if (!is_new) fail(file.name, "a second section " + in_quotes(instruction));
  return place->second;
}

/// Checks that the section of an operation reads the words that stores send.
void ScriptJoiner::check(const Operation& operation) const {
  const Section& section = decides_.find(stem_of(operation))->second;
  if (section.arguments.size() != operation.argument_count) {
    fail(section.file, stem_of(operation) + " has " + std::to_string(operation.argument_count) +
                           " arguments, not " + std::to_string(section.arguments.size()));
  }
  if (is_cell(operation.kind) != (section.head == 0)) {
    fail(section.file, stem_of(operation) + " is of the other form of state");
  }
}

bool ScriptJoiner::has(const Operation& operation) const noexcept {
  return std::ranges::find(operations_, &operation) != operations_.end();
}

ScriptJoiner::Scope ScriptJoiner::scope_of(const Operation& operation, bool is_script) const {
  Scope scope;
  scope.operation = &operation;
  scope.flags.insert(is_cell(operation.kind) ? "fixed" : "variable");
  if (is_script) scope.flags.insert("script");
  if (operation.output != 0) scope.flags.insert("output");
  if (operation.tells_windows) scope.flags.insert("table");
  if (fasts_.contains(stem_of(operation))) scope.flags.insert("fast");
  return scope;
}

std::string ScriptJoiner::step(const Operation& operation, WindowCounts windows) const {
  std::string script;
  Scope scope = scope_of(operation, true);
  scope.windows = windows;
  join_piece({}, "step", scope, script);
  return script;
}

std::string ScriptJoiner::plan(std::span<const Operation* const> operations, bool has_record,
                               WindowCounts windows) const {
  std::string script;
  Scope scope;
  scope.windows = windows;
  scope.all.assign(operations.begin(), operations.end());
  scope.flags.insert("script");
  if (has_record) scope.flags.insert("record");
  for (const Operation* each : operations) {
    scope.flags.insert(is_cell(each->kind) ? "fixed" : "variable");
  }
  if (operations.size() == 1 && !has_record && fast_plans_.contains(stem_of(*operations[0]))) {
    scope.flags.insert("fast_plan");
  }
  join_piece({}, "plan", scope, script);
  return script;
}

/// In a library, the functions of operations are created once, when it is loaded.
std::string ScriptJoiner::library(std::string_view prefix) const {
  std::string text;
  const auto add_function = [&](std::string_view name, std::string_view driver, Scope scope) {
    text.append("redis.register_function('").append(prefix).append("_").append(name);
    text.append("', function(KEYS, ARGV)\n");
    join_piece({}, driver, scope, text);
    text += "end)\n";
  };
  Scope common;
  for (const std::string_view piece : {"variable_step", "words"}) {
    join_piece({}, piece, common, text);
  }
  text += "local operations = {}\n";
  for (const Operation* each : operations_) {
    Scope scope = scope_of(*each, false);
    text += "do\n";
    join_functions(*each, scope, text);
    text += "operations[" + std::to_string(each->id) + "] = {" + description_of(*each) + "}\n";
    add_function(stem_of(*each), "step", scope);
    text += "end\n";
  }
  text += "local function operation(id)\nreturn unpack(operations[id], 1, 6)\nend\n";
  Scope plan;
  plan.flags = {"fixed"};
  plan.flags.insert("fast_plan");
  plan.all = operations_;
  add_function("fixed_plan", "plan", plan);
  plan.flags = {"fixed", "variable"};
  add_function("plan", "plan", plan);
  plan.flags = {"fixed", "variable", "record"};
  add_function("idempotent_plan", "plan", plan);
  return text;
}

void ScriptJoiner::join(const Section& section, Scope& scope, std::string& out) const {
  join_lines(section, section.lines, scope, out);
}

void ScriptJoiner::join_body(const Section& section, Scope& scope, std::string& out) const {
  scope.in_body = true;
  join(section, scope, out);
  scope.in_body = false;
}

void ScriptJoiner::join_lines(const Section& section, std::span<const std::string_view> lines,
                              Scope& scope, std::string& out) const {
  while (!lines.empty()) {
    const std::string_view instruction = instruction_in(lines[0]);
    if (operand(instruction, "if") || operand(instruction, "repeat")) {
      lines = lines.subspan(join_block(section, lines, scope, out));
      continue;
    }
    if (instruction.empty()) {
      join_code(section, lines[0], scope, out);
    } else {
      join_instruction(section, instruction, scope, out);
    }
    lines = lines.subspan(1);
  }
}

/// Joins the block that the first line opens; returns its number of lines.
std::size_t ScriptJoiner::join_block(const Section& section,
                                     std::span<const std::string_view> lines, Scope& scope,
                                     std::string& out) const {
  const std::string opening(instruction_in(lines[0]));
  std::size_t end = 1;
  std::size_t otherwise = 0;
  for (int depth = 1;; ++end) {
    if (end == lines.size()) fail(section.file, "no end of " + in_quotes(opening));
    const std::string_view inner = instruction_in(lines[end]);
    if (operand(inner, "if") || operand(inner, "repeat")) ++depth;
    if (depth == 1 && inner == "else") {
      if (otherwise != 0) fail(section.file, "a second else of " + in_quotes(opening));
      otherwise = end;
    }
    if (inner == "end" && --depth == 0) break;
  }
  if (const auto flag = operand(opening, "if")) {
    if (!is_flag(*flag)) fail(section.file, "there is no flag " + in_quotes(*flag));
    const std::size_t middle = otherwise == 0 ? end : otherwise;
    if (scope.flags.contains(*flag)) {
      join_lines(section, lines.subspan(1, middle - 1), scope, out);
    } else if (otherwise != 0) {
      join_lines(section, lines.subspan(middle + 1, end - middle - 1), scope, out);
    }
    return end + 1;
  }
  if (otherwise != 0) fail(section.file, "an else in " + in_quotes(opening));
  join_repeat(section, opening, lines.subspan(1, end - 1), scope, out);
  return end + 1;
}

/// Joins the lines of a block "repeat k = 1..n".
void ScriptJoiner::join_repeat(const Section& section, std::string_view opening,
                               std::span<const std::string_view> lines, Scope& scope,
                               std::string& out) const {
  std::string range;
  join_code(section, *operand(opening, "repeat"), scope, range);
  const std::string_view text = trim(std::string_view(range).substr(0, range.size() - 1));
  const auto equals = text.find(" = ");
  const auto dots = text.find("..");
  if (equals == text.npos || dots == text.npos) {
    fail(section.file, "expected \"repeat k = 1..n\", got " + in_quotes(opening));
  }
  std::string_view from = text.substr(equals + 3, dots - equals - 3);
  const auto windows = operand(from, "windows");
  const auto first = to_number(windows.value_or(from));
  const auto last = to_number(text.substr(dots + 2));
  if (!first || !last) fail(section.file, "no range of numbers: " + in_quotes(opening));
  if (windows && (*first < 1 || *last >= static_cast<int>(scope.windows.size()))) {
    fail(section.file, "steps have 1 to " + std::to_string(scope.windows.size() - 1) +
                           " windows: " + in_quotes(opening));
  }
  const std::string_view variable = text.substr(0, equals);
  const auto before = scope.variables;
  for (int i = *first; i <= *last; ++i) {
    if (windows && !scope.windows.test(static_cast<std::size_t>(i))) continue;
    scope.variables[variable] = i;
    join_lines(section, lines, scope, out);
  }
  scope.variables = before;
}

void ScriptJoiner::join_piece(const Section& user, std::string_view name, Scope& scope,
                              std::string& out) const {
  const auto found = pieces_.find(name);
  if (found == pieces_.end()) {
    fail(user.file.empty() ? "the Lua files" : user.file, "there is no piece " + in_quotes(name));
  }
  if (std::ranges::count(scope.uses, name) > 0) {
    fail(found->second.file, "the piece " + in_quotes(name) + " uses itself");
  }
  scope.uses.push_back(name);
  join(found->second, scope, out);
  scope.uses.pop_back();
}

void ScriptJoiner::join_instruction(const Section& section, std::string_view instruction,
                                    Scope& scope, std::string& out) const {
  if (const auto name = operand(instruction, "use")) {
    join_piece(section, *name, scope, out);
  } else if (scope.in_body) {
    fail(section.file, "no instruction: " + in_quotes(instruction));
  } else if (instruction == "decide" && scope.operation != nullptr) {
    join_decide(decides_.find(stem_of(*scope.operation))->second, scope, out);
  } else if (instruction == "fast" && scope.operation != nullptr) {
    const auto found = fasts_.find(stem_of(*scope.operation));
    if (found == fasts_.end()) {
      fail(section.file, stem_of(*scope.operation) + " has no fast path");
    }
    join_fast(found->second, scope, out);
  } else if (instruction == "fast_plan") {
    join_fast_plans(scope, out);
  } else if (instruction == "operations") {
    join_operations(scope, out);
  } else {
    fail(section.file, "no instruction: " + in_quotes(instruction));
  }
}

void ScriptJoiner::join_decide(const Section& section, Scope& scope, std::string& out) const {
  out += "local function decide(message, position, now, ";
  out += section.head != 0 ? "head" : joined(section.state);
  out += ")\nlocal " + joined(section.arguments) + " = struct.unpack('" +
         format_of(section.arguments.size()) + "', message, position)\n";
  join_body(section, scope, out);
  out += "end\n";
}

void ScriptJoiner::join_fast(const Section& section, Scope& scope, std::string& out) const {
  out += "local function fast(message, position, now, key, seen)\n";
  join_body(section, scope, out);
  out += "end\n";
}

/// decide() and, if it has one, fast().
void ScriptJoiner::join_functions(const Operation& operation, Scope& scope,
                                  std::string& out) const {
  const Operation* const before = std::exchange(scope.operation, &operation);
  join_decide(decides_.find(stem_of(operation))->second, scope, out);
  if (const auto fast = fasts_.find(stem_of(operation)); fast != fasts_.end()) {
    join_fast(fast->second, scope, out);
  }
  scope.operation = before;
}

/// The table entries of an operation for plans: kind, argument_count, output_count, head_words,
/// decide, fast. An output_count above 255 is one word more for each window.
std::string ScriptJoiner::description_of(const Operation& operation) const {
  const int head = decides_.find(stem_of(operation))->second.head;
  const int output = operation.output + (operation.tells_windows ? 256 : 0);
  return std::to_string(static_cast<int>(operation.kind)) + ", " +
         std::to_string(operation.argument_count) + ", " + std::to_string(output) + ", " +
         (head == 0 ? "nil" : std::to_string(head)) + ", decide" +
         (fasts_.contains(stem_of(operation)) ? ", fast" : "");
}

/// The fast paths of plans of one operation.
void ScriptJoiner::join_fast_plans(Scope& scope, std::string& out) const {
  for (const Operation* each : scope.all) {
    const auto found = fast_plans_.find(stem_of(*each));
    if (found == fast_plans_.end()) continue;
    scope.operation = each;
    join_body(found->second, scope, out);
  }
  scope.operation = nullptr;
}

/// The branches of operation(id).
void ScriptJoiner::join_operations(Scope& scope, std::string& out) const {
  for (const Operation* each : scope.all) {
    out += "if id == " + std::to_string(each->id) + " then\n";
    join_functions(*each, scope, out);
    out += "return " + description_of(*each) + "\nend\n";
  }
}

/// The line with its variables replaced by numbers.
std::string ScriptJoiner::with_variables(const Section& section, std::string_view line,
                                         Scope& scope) const {
  std::string text;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] != '$') {
      text += line[i++];
      continue;
    }
    std::size_t end = i + 1;
    while (end < line.size() && is_name(line[end])) ++end;
    const auto variable = scope.variables.find(line.substr(i + 1, end - i - 1));
    if (variable == scope.variables.end()) {
      fail(section.file,
           "no variable " + in_quotes(line.substr(i, end - i)) + ": " + in_quotes(line));
    }
    if (line.substr(end, 1) == "[") {
      const std::size_t close = line.find(']', end);
      if (close == line.npos) fail(section.file, "no ] behind " + in_quotes(line.substr(i)));
      const std::string_view item = line.substr(end + 1, close - end - 1);
      const auto before = scope.variables;
      const int count = variable->second;
      for (int k = 1; k <= count; ++k) {
        scope.variables["k"] = k;
        text += with_variables(section, item, scope);
      }
      scope.variables = before;
      end = close + 1;
    } else {
      text += std::to_string(variable->second);
    }
    i = end;
  }
  return text;
}

/// Appends a line, with its variables and constants replaced by numbers.
void ScriptJoiner::join_code(const Section& section, std::string_view line, Scope& scope,
                             std::string& out) const {
  const std::string text = with_variables(section, line, scope);
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    const auto goes_on = [&] {
      if (end == text.size()) return false;
      const bool is_dot = text[end] == '.' && end > i && end + 1 < text.size();
      return is_name(text[end]) || (is_dot && is_name(text[end + 1]));
    };
    while (goes_on()) ++end;
    if (end == i) {
      out += text[i++];
      continue;
    }
    const std::string_view name = std::string_view(text).substr(i, end - i);
    const std::string_view first = name.substr(0, name.find('.'));
    if (name == "word_limit" ||
        (first.size() < name.size() && first[0] >= 'A' && first[0] <= 'Z')) {
      out += std::to_string(constant(section, name, scope));
    } else {
      out += name;
    }
    i = end;
  }
  out += '\n';
}

Word ScriptJoiner::constant(const Section& section, std::string_view name,
                            const Scope& scope) const {
  if (const Operation* const row = scope.operation;
      row != nullptr && name.starts_with("Operation.")) {
    const std::string_view field = name.substr(name.find('.') + 1);
    if (field == "id") return row->id;
    if (field == "kind") return static_cast<Word>(row->kind);
    if (field == "argument_count") return row->argument_count;
    if (field == "output") return row->output;
    if (field == "head") return decides_.find(stem_of(*row))->second.head;
  }
  std::string full(name);
  if (full.starts_with("Rule.")) full.replace(0, 4, section.rule);
  const Word* const found = find_constant(full);
  if (found == nullptr) fail(section.file, "no constant " + in_quotes(full));
  return *found;
}

}  // namespace sluice::redis_detail
