// Kernel and twin are the same function: proven on a real server by random decisions.
// Threading: single-threaded.
#include "tests/twin/twin.hpp"

#include <cstdio>
#include <regex>

#include "redis_scripts.hpp"
#include "sluice/algorithms/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/twin/scripts.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("kernel and twin decide alike, to the integer and to the byte",
          "[twin][redis][C-020][C-021][C-022][C-024][C-025][C-028][C-029][C-061]") {
  if (redis_left_out()) return;
  Random random("kernel and twin decide alike, to the integer and to the byte");
  CAPTURE(random.repeat());
  RedisServer server;
  RedisClient client(server.unix_socket());
  Fragments fragments = read_fragments();
  fragments.at("clock.lua") = driven_clock;
  Twin twin(client, join(fragments), operations(), random);
  const std::size_t decisions = scaled(100'000, 1'000);
  const auto difference = twin.run(decisions);
  INFO(difference.value_or(""));
  CHECK_FALSE(difference.has_value());
  const TwinCounts& counts = twin.counts();
  std::printf(
      "twin: %zu decisions, %zu steps, %zu plans; %zu allowed, %zu refused, %zu failed; "
      "stamps ahead %zu, far ahead %zu; repeat: %s\n",
      counts.decisions, counts.steps, counts.plans, counts.allowed, counts.refused, counts.failed,
      counts.stamp_ahead, counts.stamp_far_ahead, random.repeat().c_str());
  CHECK(counts.decisions == decisions);
  CHECK(counts.plans > decisions / 10);
  CHECK(counts.allowed > decisions / 10);
  CHECK(counts.refused > decisions / 20);
  CHECK(counts.failed > decisions / 100);
  CHECK(counts.stamp_ahead > decisions / 100);
  CHECK(counts.stamp_far_ahead > decisions / 100);
}

TEST_CASE("a script decides at the server's time, whatever a client sends",
          "[twin][redis][C-008][C-009]") {
  if (redis_left_out()) return;
  Random random("a script decides at the server's time, whatever a client sends");
  CAPTURE(random.repeat());
  RedisServer server;
  RedisClient client(server.unix_socket());
  const auto difference =
      Twin::check_server_time(client, join(read_fragments()), operations(), random);
  INFO(difference.value_or(""));
  CHECK_FALSE(difference.has_value());
}

TEST_CASE("every row of the table has its script and its row in the plan's script", "[twin]") {
  const auto scripts = join(read_fragments());
  const std::string plan = read_fragments().at("plan.lua");
  std::size_t rows_in_plan = 0;
  const std::regex row_pattern("\\[([0-9]+)\\] = \\{([0-9]+), ([a-z_]+)\\}");
  for (std::sregex_iterator it(plan.begin(), plan.end(), row_pattern), end; it != end; ++it) {
    const auto id = static_cast<std::size_t>(std::stoi((*it)[1].str()));
    REQUIRE(id < operations().size());
    const Operation& row = *operations()[id];
    std::string stem(row.name);
    std::ranges::replace(stem, '.', '_');
    CHECK((*it)[3].str() == stem);
    CHECK(std::stoi((*it)[2].str()) == static_cast<int>(row.kind));
    CHECK(scripts.contains(stem));
    CHECK(
        read_fragments().at(stem + ".lua").find("KIND, decide = " + (*it)[2].str() + ", " + stem) !=
        std::string::npos);
    ++rows_in_plan;
  }
  CHECK(rows_in_plan == operations().size());
  for (std::size_t i = 0; i < operations().size(); ++i) CHECK(operations()[i]->id == i);
}

TEST_CASE("the numbers in Lua are the numbers in C++", "[twin]") {
  const Fragments fragments = read_fragments();
  const auto number_of = [](const std::string& text, const std::string& name) -> Word {
    // local A, B = 1, 2: the name's place among the names is its number's among the numbers.
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, std::regex("^local ([A-Z_, ]+) = ([-0-9, ]+)"))) continue;
      std::istringstream names(std::regex_replace(found[1].str(), std::regex(","), " "));
      std::istringstream numbers(std::regex_replace(found[2].str(), std::regex(","), " "));
      std::string one;
      Word number = 0;
      while (names >> one && numbers >> number) {
        if (one == name) return number;
      }
    }
    return INT64_MIN;
  };
  const std::string& prelude = fragments.at("prelude.lua");
  const std::pair<const char*, Errc> codes[] = {
      {"INVALID_COST", Errc::invalid_cost},
      {"COST_EXCEEDS_CAPACITY", Errc::cost_exceeds_capacity},
      {"WRONG_TYPE", Errc::wrong_type},
      {"WRONG_KIND", Errc::wrong_kind},
      {"CORRUPT_STATE", Errc::corrupt_state}};
  for (const auto& [name, code] : codes) {
    INFO(name);
    CHECK(number_of(prelude, name) == -static_cast<Word>(code));
  }
  CHECK(number_of(prelude, "WORD_LIMIT") == word_limit);
  CHECK(number_of(fragments.at("token_bucket.lua"), "MAX_AHEAD") == TokenBucketRule::max_ahead);
}

TEST_CASE("the embedded scripts are the joined fragments, under the hash that the server uses",
          "[twin][redis]") {
  if (redis_left_out()) return;
  RedisServer server;
  RedisClient client(server.unix_socket());
  const auto scripts = join(read_fragments());
  CHECK(redis_detail::script_count == scripts.size());
  for (std::size_t i = 0; i < redis_detail::script_count; ++i) {
    const auto& script = redis_detail::scripts[i];
    INFO(script.name);
    REQUIRE(scripts.contains(script.name));
    CHECK(scripts.find(script.name)->second == script.text);
    CHECK(client({"SCRIPT", "LOAD", script.text}).text == script.sha1);
  }
}
