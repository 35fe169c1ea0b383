// Kernel and twin are the same function: proven on a real server by random decisions.
// Threading: single-threaded.
#include "tests/twin/twin.hpp"

#include <cstdio>
#include <regex>

#include "redis_scripts.hpp"
#include "sluice/plan.hpp"
#include "sluice/rules/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/twin/scripts.hpp"
#include "tests/twin/toy.hpp"
#include "tests/twin/wire.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// The fragments with the tests' own rules, and a clock that the test drives.
Scripts driven_scripts() {
  Fragments fragments = read_fragments();
  fragments.at("clock.lua") = driven_clock;
  add_toys(fragments);
  return join(fragments, toy_rules());
}

std::vector<Subject> all_subjects() {
  std::vector<Subject> all = subjects();
  all.insert(all.end(), toy_subjects().begin(), toy_subjects().end());
  return all;
}

/// Runs the comparison, and requires that it has met every situation.
void check_alike(std::span<const Subject> subjects, const std::string& name, std::size_t decisions,
                 Random& random) {
  static const RedisServer server;
  RedisClient client(server.unix_socket());
  Twin twin(client, driven_scripts(), subjects, random);
  const auto difference = twin.run(decisions);
  INFO(name << ": " << difference.value_or(""));
  CHECK_FALSE(difference.has_value());
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
  const bool buckets = subjects.size() == 1 && subjects[0].kind() == StateKind::token_bucket;
  CHECK((!buckets || counts.buckets > decisions / 50));
  CHECK(counts.allowed > decisions / 10);
  // A setting is there or not: asked for it, a rule answers or fails, and has nothing to refuse.
  const bool refuses =
      subjects.size() > 1 || subjects[0].rows[0]->kind != StateKind::shared_sliding_window;
  CHECK((!refuses || counts.refused > decisions / 200));
  CHECK(counts.failed > decisions / 400);
  CHECK(counts.writes > decisions / 20);
  const bool cells =
      std::ranges::any_of(subjects, [](const Subject& s) { return is_cell(s.kind()); });
  CHECK((!cells || counts.ttl_kept > decisions / 400));
  CHECK(counts.stamp_ahead > decisions / 100);
  CHECK(counts.stamp_far_ahead > decisions / 200);
}

}  // namespace

TEST_CASE("kernel and twin decide alike, to the integer and to the byte",
          "[twin][redis][C-020][C-021][C-022][C-024][C-025][C-028][C-029][C-061]") {
  if (redis_left_out()) return;
  Random random("kernel and twin decide alike, to the integer and to the byte");
  CAPTURE(random.repeat());
  for (const Subject& subject : all_subjects()) {
    check_alike({&subject, 1}, std::string(subject.rows[0]->name), scaled(50'000, 2'000), random);
  }
}

TEST_CASE("plans over every kind of state decide alike, all or nothing", "[twin][redis]") {
  if (redis_left_out()) return;
  Random random("plans over every kind of state decide alike, all or nothing");
  CAPTURE(random.repeat());
  check_alike(all_subjects(), "all kinds", scaled(50'000, 2'000), random);
}

TEST_CASE("a word that no rule has written makes a state corrupt when it is met", "[twin][redis]") {
  if (redis_left_out()) return;
  Random random("a word that no rule has written makes a state corrupt when it is met");
  CAPTURE(random.repeat());
  const RedisServer server;
  RedisClient client(server.unix_socket());
  const auto difference =
      check_spoilt(client, driven_scripts(), all_subjects(), scaled(5'000, 500), random);
  INFO(difference.value_or(""));
  CHECK_FALSE(difference.has_value());
}

TEST_CASE("a script decides at the server's time, whatever a client sends",
          "[twin][redis][C-008][C-009]") {
  if (redis_left_out()) return;
  Random random("a script decides at the server's time, whatever a client sends");
  CAPTURE(random.repeat());
  RedisServer server;
  RedisClient client(server.unix_socket());
  for (const Subject& subject : subjects()) {
    const auto difference =
        check_server_time(client, join(read_fragments()), {&subject, 1}, random);
    INFO(difference.value_or(""));
    CHECK_FALSE(difference.has_value());
  }
}

TEST_CASE("every row of the table has its script and its row in the plan's script", "[twin]") {
  const auto scripts = join(read_fragments());
  const ScriptTables tables = read_script_tables();
  CHECK(tables.rules.size() == operations().size());
  for (const Operation* row : operations()) {
    INFO(row->name);
    const std::string stem = script_name(*row);
    CHECK(scripts.contains(stem));
    const auto rule = std::ranges::find(tables.rules, stem, &ScriptTables::Rule::name);
    REQUIRE(rule != tables.rules.end());
    CHECK(rule->id == row->id);
    CHECK((rule->form == "wide" || rule->form == "brief") == !is_cell(row->kind));
    std::string arguments = "<";
    for (int i = 0; i < row->argument_count; ++i) arguments += "i8";
    const std::regex naming(
        "\\nlocal KIND, ARGUMENTS, (?:HEAD, )?(?:DETAILS, )?decide = ([0-9]+), '([<i8]+)', "
        "(?:([0-9]+), )?(?:(-?[0-9]+), )?([a-z_]+)\\s*$");
    const std::string text = read_fragments().at(stem + ".lua");
    std::smatch found;
    REQUIRE(std::regex_search(text, found, naming));
    CHECK(std::stoi(found[1].str()) == static_cast<int>(row->kind));
    CHECK(found[2].str() == arguments);
    CHECK(found[5].str() == stem);
  }
}

TEST_CASE("the numbers in Lua are the numbers in C++", "[twin]") {
  std::map<std::string, Word> named{
      {"StateKind::idempotency_record", static_cast<Word>(StateKind::idempotency_record)},
      {"id_kept_for", id_kept_for.count()},
      {"word_limit", word_limit},
      {"max_ahead", TokenBucketRule::max_ahead}};
  for (const auto& [name, code] : {std::pair{"invalid_cost", Errc::invalid_cost},
                                   {"cost_exceeds_capacity", Errc::cost_exceeds_capacity},
                                   {"wrong_type", Errc::wrong_type},
                                   {"wrong_kind", Errc::wrong_kind},
                                   {"corrupt_state", Errc::corrupt_state},
                                   {"invalid_argument", Errc::invalid_argument},
                                   {"not_configured", Errc::not_configured},
                                   {"config_changed", Errc::config_changed},
                                   {"id_reused", Errc::id_reused},
                                   {"outside_calendar", Errc::outside_calendar}}) {
    named[std::string("Errc::") + name] = -static_cast<Word>(code);
  }
  std::map<std::string, std::size_t> seen;
  // `status = -17 -- Errc::corrupt_state`: the number before the comment has its name there; of an
  // error the last negative one, else the last.
  const std::regex errors("(-[0-9]+)[^-\\n]*-- (Errc::[a-z_]+)");
  const std::regex others(
      "([0-9]+)[^0-9\\n]*-- (StateKind::idempotency_record|id_kept_for|word_limit|max_ahead)");
  for (const auto& [file, text] : read_fragments()) {
    for (const std::regex& pattern : {errors, others}) {
      for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
        INFO(file << ": " << it->str());
        REQUIRE(named.contains((*it)[2].str()));
        CHECK(std::stoll((*it)[1].str()) == named.at((*it)[2].str()));
        ++seen[(*it)[2].str()];
      }
    }
  }
  for (const char* name :
       {"Errc::wrong_type", "Errc::wrong_kind", "Errc::corrupt_state", "Errc::invalid_cost",
        "Errc::cost_exceeds_capacity", "StateKind::idempotency_record", "id_kept_for", "word_limit",
        "max_ahead"}) {
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
