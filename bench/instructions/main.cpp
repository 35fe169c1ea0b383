// Counts the instructions of one decision by valgrind's callgrind, which gives the same numbers on
// every machine. A case runs twice, N and 2 N times: the difference is without what prepares it.
//
//   bench_instructions [--benchmark_filter=REGEX]  a table; nothing fails
//   bench_instructions --check                     ends with 1 if a case has more than its ceiling,
//                                                  with 77 where nothing can be counted
//   bench_instructions --run CASE TIMES            runs a case; what valgrind is given
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <regex>
#include <string>

#include "bench/instructions/cases.hpp"

namespace sluice::bench {
namespace {

constexpr std::uint64_t times = 5'000;
constexpr int left_out_code = 77;

int run(const std::string& name, std::uint64_t how_often) {
  for (const InstructionCase& each : instruction_cases()) {
    if (each.name != name) continue;
    const std::uint64_t others = each.run(how_often);
    // Under valgrind, some milliseconds pass between two decisions of a slow machine.
    if (others <= how_often / 50) return EXIT_SUCCESS;
    std::printf("%s: %ju of %ju decisions were not as expected\n", each.name,
                static_cast<std::uintmax_t>(others), static_cast<std::uintmax_t>(how_often));
  }
  return EXIT_FAILURE;
}

/// The instructions of a whole run, or nothing if it failed, which it has said then.
std::optional<double> instructions(const InstructionCase& one, std::uint64_t how_often) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "valgrind --tool=callgrind --callgrind-out-file=/dev/null '" + self +
                              "' --run " + one.name + ' ' + std::to_string(how_often) + " 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 512> part{};
  while (std::fgets(part.data(), int{part.size()}, pipe) != nullptr) text += part.data();
  std::smatch found;
  if (pclose(pipe) == 0 && std::regex_search(text, found, std::regex("Collected *: *([0-9]+)"))) {
    return std::stod(found[1]);
  }
  std::printf("%s", text.c_str());
  return {};
}

/// Why nothing can be counted here, or null.
const char* why_not([[maybe_unused]] bool checked) {
#ifndef NDEBUG
  if (checked) return "the ceilings are those of an optimized build";
#endif
  return std::system("valgrind --version >/dev/null 2>&1") == 0 ? nullptr
                                                                : "valgrind is not installed";
}

/// True if every case was counted, and is within its ceiling if that is `checked`.
bool count_all(const std::regex& filter, bool checked) {
  bool good = true;
  for (const InstructionCase& each : instruction_cases()) {
    if (!std::regex_search(each.name, filter)) continue;
    const auto once = instructions(each, times);
    const auto twice = instructions(each, 2 * times);
    if (!once || !twice) return false;
    const double count = (*twice - *once) / double{times};
    std::printf("%-38s %8.1f  %s", each.name, count, each.what);
    if (checked && each.most > 0 && count > each.most) {
      std::printf(": more than %.0f", each.most);
      good = false;
    }
    std::printf("\n");
  }
  return good;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  std::regex filter(".");
  bool checked = false;
  for (int i = 1; i < argc; ++i) {
    constexpr const char* filter_flag = "--benchmark_filter=";
    if (std::strncmp(argv[i], filter_flag, std::strlen(filter_flag)) == 0) {
      filter = argv[i] + std::strlen(filter_flag);
    } else if (std::strcmp(argv[i], "--check") == 0) {
      checked = true;
    } else if (std::strcmp(argv[i], "--run") == 0 && i + 2 < argc) {
      return run(argv[i + 1], std::strtoull(argv[i + 2], nullptr, 10));
    } else {
      std::fprintf(stderr, "unknown option \"%s\"\n", argv[i]);
      return EXIT_FAILURE;
    }
  }
  const char* const missing = why_not(checked);
  if (missing != nullptr) {
    std::printf("skipped: %s\n", missing);
    return checked ? left_out_code : EXIT_SUCCESS;
  }
  std::printf("instructions of one decision, by callgrind\n");
  return count_all(filter, checked) ? EXIT_SUCCESS : EXIT_FAILURE;
}
