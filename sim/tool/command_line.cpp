// See command_line.hpp.
#include "sim/tool/command_line.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>

namespace sluice::tool {
namespace {

/// Nobody could catch it everywhere: many functions of a simulation are noexcept.
void end_without_memory() {
  std::fputs("there is not enough memory\n", stderr);
  std::_Exit(2);
}

}  // namespace

int parse_and_run(CLI::App& app, int argc, char** argv, const std::function<int()>& run) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::set_new_handler(end_without_memory);
  try {
    const int code = run();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    fmt::print(stderr, "{}: the output could not be written: {}\n", app.get_name(),
               std::generic_category().message(errno));
    return 2;
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 2;
  }
}

CLI::Validator whole_number() {
  return {[](std::string& text) {
            std::uint64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [stopped, error] = std::from_chars(text.data(), end, value);
            if (error != std::errc{} || stopped != end) {
              return fmt::format("must be 0 to {}, got {}", UINT64_MAX, text);
            }
            text = fmt::format("{}", value);
            return std::string();
          },
          "0 to 2^64 - 1"};
}

}  // namespace sluice::tool
