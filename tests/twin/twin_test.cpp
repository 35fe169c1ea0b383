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
  const std::regex row_pattern("id == ([0-9]+) then\\s+KIND, decide = ([0-9]+), ([a-z_]+)");
  for (std::sregex_iterator it(plan.begin(), plan.end(), row_pattern), end; it != end; ++it) {
    const auto id = static_cast<std::size_t>(std::stoi((*it)[1].str()));
    REQUIRE(id < operations().size());
    const Operation& row = *operations()[id];
    std::string stem(row.name);
    std::ranges::replace(stem, '.', '_');
    CHECK((*it)[3].str() == stem);
    CHECK(std::stoi((*it)[2].str()) == static_cast<int>(row.kind));
    CHECK(scripts.contains(stem));
    std::string arguments;
    for (int i = 0; i < row.argument_count; ++i) arguments += "i8";
    CHECK(read_fragments()
              .at(stem + ".lua")
              .find("KIND, ARGUMENTS, decide = " + (*it)[2].str() + ", '<" + arguments + "', " +
                    stem) != std::string::npos);
    ++rows_in_plan;
  }
  CHECK(rows_in_plan == operations().size());
  for (std::size_t i = 0; i < operations().size(); ++i) CHECK(operations()[i]->id == i);
}

TEST_CASE("the numbers in Lua are the numbers in C++", "[twin]") {
  const std::map<std::string, Word> named{
      {"Errc::invalid_cost", -static_cast<Word>(Errc::invalid_cost)},
      {"Errc::cost_exceeds_capacity", -static_cast<Word>(Errc::cost_exceeds_capacity)},
      {"Errc::wrong_type", -static_cast<Word>(Errc::wrong_type)},
      {"Errc::wrong_kind", -static_cast<Word>(Errc::wrong_kind)},
      {"Errc::corrupt_state", -static_cast<Word>(Errc::corrupt_state)},
      {"max_ahead", TokenBucketRule::max_ahead}};
  std::map<std::string, std::size_t> seen;
  // `status = -17 -- Errc::corrupt_state`: the number before the comment has its name there.
  const std::regex pattern("[^\\n]*?(-?[0-9]+)[^-0-9\\n][^-\\n]*-- (Errc::[a-z_]+|max_ahead)");
  for (const auto& [file, text] : read_fragments()) {
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
      INFO(file << ": " << it->str());
      REQUIRE(named.contains((*it)[2].str()));
      CHECK(std::stoll((*it)[1].str()) == named.at((*it)[2].str()));
      ++seen[(*it)[2].str()];
    }
  }
  for (const auto& [name, number] : named) {
    INFO(name);
    CHECK(seen[name] > 0);
  }
  CHECK(read_fragments().at("prelude.lua").find(", " + std::to_string(word_limit) + "\n") !=
        std::string::npos);
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
