// See command_line.hpp.
#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sluice/version.hpp"
#include "src/util/nearest.hpp"

namespace sluice::tool {
namespace {

/// The name in an option of any form: "--seed=3", "-seed".
std::string_view name_in(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  return word.substr(0, word.find('='));
}

std::string no_command(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return fmt::format("there is no command \"{}\"; did you mean {}? There are: {}", word,
                     detail::nearest(word, views, word.size() + 10), fmt::join(names, ", "));
}

std::string no_option(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view near = detail::nearest(name_in(word), views);
  return fmt::format("there is no option \"{}\"; ", word) +
         (near.empty() ? fmt::format("there are: --{}", fmt::join(names, ", --"))
                       : fmt::format("did you mean --{}?", near));
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not shown either
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

/// An option of a command that stands before it is told apart.
std::string wrong_option(const CLI::App& app, const CLI::App& command, const std::string& word) {
  const std::vector<std::string> names = options_of(command);
  if (std::ranges::find(names, name_in(word)) == names.end()) return no_option(word, names);
  return fmt::format("--{} stands behind the command: {} {} --{}", name_in(word), app.get_name(),
                     command.get_name(), name_in(word));
}

/// What is wrong with the first word that is neither a command nor an option; "": there is none.
std::string unknown_word(const CLI::App& app) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  const bool wants_command = given.empty() && app.get_require_subcommand_min() > 0;
  for (const std::string& word : app.remaining(true)) {
    if (is_option(word) && !given.empty()) return wrong_option(app, *given.front(), word);
    if (is_option(word)) return no_option(word, options_of(app));
    if (!wants_command) continue;
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    return no_command(word, names);
  }
  return {};
}

/// Nobody could catch it everywhere: many functions of a simulation are noexcept.
void end_without_memory() {
  std::fputs("there is not enough memory\n", stderr);
  std::_Exit(2);
}

/// `code`, or 2 if not all of the output could be written. A run that failed has said why: a write
/// before this one may have failed by the same cause.
int ended(const CLI::App& app, int code) try {
  flush_output();
  return code;
} catch (const std::exception& error) {
  if (code != 2) fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
  return 2;
}

}  // namespace

void flush_output() {
  errno = 0;
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const std::string why = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  throw std::runtime_error("the output could not be written" + why);
}

int parse_and_run(CLI::App& app, int argc, char** argv, const std::function<int()>& run) {
  app.set_help_all_flag("--help-all", "Print all help, that of every command, and exit");
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), SLUICE_VERSION_STRING));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string unknown = error.get_exit_code() == 0 ? std::string() : unknown_word(app);
    if (unknown.empty()) return app.exit(error) == 0 ? ended(app, 0) : 2;
    fmt::print(stderr, "{}\nRun with --help for more information.\n", unknown);
    return 2;
  }
  std::set_new_handler(end_without_memory);
  try {
    return ended(app, run());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 2;
  }
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return {
      [=](std::string& text) {
        std::uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, value);
        const bool is_number = error == std::errc{} && stopped == end;
        if (!is_number || value < least || value > most) {
          return fmt::format("a whole number must be {} to {}, got {}", least, most, text);
        }
        text = fmt::format("{}", value);
        return std::string();
      },
      least == 0 && most == UINT64_MAX ? "0 to 2^64 - 1" : fmt::format("{} to {}", least, most)};
}

}  // namespace sluice::tool
