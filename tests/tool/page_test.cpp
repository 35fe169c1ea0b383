// The examples of docs/operator.md, run as they stand there.
#include <fstream>
#include <regex>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {
namespace {

/// A block of the page: commands, and what they print if the page shows it.
struct Example {
  std::string commands;
  std::string output;
};

std::vector<Example> examples_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<Example> examples;
  std::string* block = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line == "```sh") {
      block = &examples.emplace_back().commands;
    } else if (line == "```text") {
      block = &examples.back().output;
    } else if (line == "```") {
      block = nullptr;
    } else if (block != nullptr) {
      *block += line + "\n";
    }
  }
  return examples;
}

/// Spans of time, which differ from run to run, and the name of the server.
std::string masked(const std::string& text) {
  const std::string spans =
      std::regex_replace(text, std::regex("(in|for) [0-9.]+ ?(us|ms|s|m)( [0-9]+s)?"), "$1 TIME");
  return std::regex_replace(spans, std::regex("(redis|unix)://[^ ]*:"), "SERVER:");
}

TEST_CASE("the page shows what the program prints", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server({"appendonly yes"});
  const auto store = make_redis_store(options_of(server));
  const TokenBucket bucket(*store, "api", Quota::per_minute(10).burst(5));
  REQUIRE(bucket.try_acquire("alice", 3).allowed);
  const auto examples = examples_of(SLUICE_PAGE);
  CHECK(examples.size() >= 4);
  for (const Example& each : examples) {
    INFO(each.commands);
    const std::string commands =
        std::regex_replace(each.commands, std::regex("export SLUICE[^\n]*\n"), "");
    const Ran ran = shell(url_of(server), "cd /tmp; sluice() { \"$SLUICE\" \"$@\"; }\n" + commands);
    INFO(ran.output);
    CHECK(ran.code == (commands.find("peek") == std::string::npos ? 0 : 1));
    if (!each.output.empty()) CHECK(masked(ran.output) == masked(each.output));
  }
}

}  // namespace
}  // namespace sluice::test
