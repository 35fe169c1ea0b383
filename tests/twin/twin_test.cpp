// Kernel and twin are the same function: proven on a real server by random decisions.
// Threading: single-threaded.
#include "tests/twin/twin.hpp"

#include <cstdio>

#include "backends/redis/scripts/scripts.hpp"
#include "sluice/plan.hpp"
#include "tests/catch.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/twin/scripts.hpp"
#include "tests/twin/toy.hpp"
#include "tests/twin/wire.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// The scripts with the tests' own rules, and a clock that the test drives.
Scripts driven_scripts() {
  LuaFiles files = read_lua_files();
  drive_clock(files);
  add_toys(files);
  return join(files, toy_operations());
}

std::vector<Subject> all_subjects() {
  std::vector<Subject> all = subjects();
  all.insert(all.end(), toy_subjects().begin(), toy_subjects().end());
  return all;
}

/// A server of its own, and the draws of the test case that runs.
struct Trial {
  Random random{Catch::getResultCapture().getCurrentTestName()};
  RedisServer server{};
  RedisClient client{server.unix_socket()};

  void require_none(const std::optional<std::string>& difference) const {
    INFO(random.repeat() << "\n" << difference.value_or(""));
    CHECK_FALSE(difference.has_value());
  }
};

/// Runs the comparison, and requires that it has met every situation.
void check_alike(Trial& on, std::span<const Subject> subjects, const std::string& name,
                 std::size_t decisions) {
  Twin twin(on.client, driven_scripts(), subjects, on.random);
  INFO(name);
  on.require_none(twin.run(decisions));
  const TwinCounts& counts = twin.counts();
  std::printf(
      "twin, %s: %zu decisions, %zu steps, %zu plans, %zu asked again; %zu allowed, %zu refused, "
      "%zu failed, %zu corrupt, %zu writes, %zu of them with the time to live that was; stamps "
      "ahead "
      "%zu, far ahead %zu\n",
      name.c_str(), counts.decisions, counts.steps, counts.plans, counts.once, counts.allowed,
      counts.refused, counts.failed, counts.corrupt, counts.writes, counts.ttl_kept,
      counts.stamp_ahead, counts.stamp_far_ahead);
  CHECK(counts.decisions == decisions);
  CHECK(counts.plans > decisions / 10);
  CHECK(counts.once > decisions / 400);
  CHECK(counts.allowed > decisions / 10);
  // A setting is there or not: asked for it, a rule answers or fails, and has nothing to refuse.
  const bool refuses =
      subjects.size() > 1 || subjects[0].rows[0]->kind != StateKind::shared_sliding_window;
  CHECK((!refuses || counts.refused > decisions / 200));
  CHECK(counts.failed > decisions / 400);
  const auto writes = [](const Subject& s) { return s.kind() != StateKind::constant; };
  CHECK((counts.writes > decisions / 20) == std::ranges::any_of(subjects, writes));
  const bool cells = std::ranges::any_of(
      subjects, [&](const Subject& s) { return is_cell(s.kind()) && writes(s); });
  CHECK((!cells || counts.ttl_kept > decisions / 400));
  CHECK(counts.stamp_ahead > decisions / 100);
  CHECK(counts.stamp_far_ahead > decisions / 200);
}

}  // namespace

TEST_CASE("kernel and twin decide alike, to the integer and to the byte",
          "[twin][redis][C-020][C-021][C-022][C-024][C-025][C-028][C-029][C-061]") {
  if (redis_left_out()) return;
  Trial on;
  for (const Subject& subject : all_subjects()) {
    check_alike(on, {&subject, 1}, std::string(subject.rows[0]->name), scaled(50'000, 2'000));
  }
}

TEST_CASE("plans over every kind of state decide alike, all or nothing", "[twin][redis]") {
  if (redis_left_out()) return;
  Trial on;
  check_alike(on, all_subjects(), "all kinds", scaled(50'000, 2'000));
}

TEST_CASE("a word that no rule has written makes a state corrupt when it is met", "[twin][redis]") {
  if (redis_left_out()) return;
  Trial on;
  on.require_none(
      check_spoilt(on.client, driven_scripts(), all_subjects(), scaled(5'000, 500), on.random));
}

TEST_CASE("a spoilt idempotency record is an error, means nothing any more, or is repeated",
          "[twin][redis]") {
  if (redis_left_out()) return;
  Trial on;
  on.require_none(
      check_records(on.client, driven_scripts(), all_subjects(), scaled(5'000, 500), on.random));
}

TEST_CASE("of 4096 leases the last places are taken and given back alike", "[twin][redis]") {
  if (redis_left_out()) return;
  Trial on;
  for (std::size_t i = 0; i < scaled(20, 2); ++i) {
    on.require_none(check_full_tables(on.client, driven_scripts(), all_subjects(), on.random));
  }
}

TEST_CASE("a script decides at the server's time, whatever a client sends",
          "[twin][redis][C-008][C-009]") {
  if (redis_left_out()) return;
  Trial on;
  for (const Subject& subject : subjects()) {
    on.require_none(check_server_time(on.client, join(read_lua_files()), {&subject, 1}, on.random));
  }
}

TEST_CASE("the embedded scripts are the joined files, under the hash that the server uses",
          "[twin][redis]") {
  if (redis_left_out()) return;
  RedisServer server;
  RedisClient client(server.unix_socket());
  const LuaFiles files = read_lua_files();
  std::vector<redis_detail::LuaFile> texts;
  for (const auto& [name, text] : files) texts.push_back({name, text});
  const redis_detail::ScriptJoiner joiner(texts, operations());
  for (const Operation* row : operations()) {
    INFO(row->name);
    const Step step(row, "key", {});
    REQUIRE(redis_detail::has_scripts({&step, 1}));
    const redis_detail::Script& script = redis_detail::script_for({&step, 1}, false);
    CHECK(script.text == joiner.step(*row, {}));
    CHECK(client({"SCRIPT", "LOAD", script.text}).text == script.sha1);
  }
}
