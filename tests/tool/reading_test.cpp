// keys, show, peek, top and watch on a real server.
#include <csignal>
#include <iterator>
#include <set>

#include "sluice/rules/wait_line.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/limiters.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST_CASE("what every limiter writes is listed and shown", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  std::set<std::string> keys;
  for_each_limiter([&](const std::string& key, auto make, auto ask) {
    Store& there = *site.store;
    const auto limiter = make(there);
    std::error_code error;
    REQUIRE(ask(limiter, error));
    REQUIRE_FALSE(error);
    keys.insert(key);
  });
  const TokenBucket bucket(*site.store, "id", Quota::per_second(1));
  SeededRng rng(1);
  REQUIRE(bucket.try_acquire("a", 1, RequestId::draw(rng)).allowed);
  REQUIRE(decide(*site.store, Step{&wait_line_enter,
                                   Key{"a",
                                       "line2\x1f"
                                       "bucket\x1f"
                                       "10/s"},
                                   {word_limit, 1, 1'000'000, 600'000'000, 3}})
              .allowed);

  const Ran listed = site.run("keys --json");
  INFO(listed.output);
  CHECK(listed.code == 0);
  std::set<std::string> kinds;
  for (const json& line : json_lines(listed.output)) {
    if (line.contains("totals")) {
      CHECK(line["totals"]["foreign"] == 0);
      continue;
    }
    const std::string key = line["key"];
    keys.erase(key);
    kinds.insert(line["kind"]);
    const Ran shown = site.run("show '" + key + "' --json");
    INFO(shown.output);
    REQUIRE(shown.code == 0);
    const json one = json_lines(shown.output).at(0);
    CHECK(one["sound"] == true);
    CHECK(one["expires_us"] > 0);
    const Ran text = site.run("show '" + key + "'");
    CHECK(text.code == 0);
    CHECK_THAT(text.output, contains_text(key));
    if (key == "{a}:bucket:10/s") {
      CHECK(one["line"]["waiting"][0]["first_wants"] == 3);
      CHECK_THAT(text.output, contains_text("1 process waiting"));
    }
  }
  CHECK(keys.empty());
  CHECK(kinds.size() == std::size(state_descriptions) - 1);  // all but a constant
}

TEST_CASE("show tells what the limiter told", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const TokenBucket bucket(*site.store, "api", Quota::per_day(5));
  for (int i = 0; i < 3; ++i) REQUIRE(bucket.try_acquire("alice").allowed);
  const std::string key = "'{alice}:api:5/day'";

  CHECK_THAT(site.run("show " + key).output,
             contains_text("a token bucket, 3 used") &&
                 contains_text("not in the state: give --quota or --limit"));
  CHECK_THAT(site.run("show " + key + " --quota 5/day").output,
             contains_text("3 of 5 used") && contains_text("remaining      2"));
  const Ran wrong = site.run("show " + key + " --quota 6/d");
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.output, contains_text("the key is counted in 5/day"));
  for (const std::string limit : {"nonsense", "0", "1,x", "9007199254740993"}) {
    const Ran ran = site.run("show " + key + " --limit " + limit);
    CHECK(ran.code == 2);
    CHECK_THAT(ran.output, contains_text("--limit: a whole number must be 1 to 2251799813685248") &&
                               contains_text(", got " + limit.substr(limit.find(',') + 1)));
  }
  CHECK_THAT(site.run("watch " + key + " --times 1 --interval 99ms").output,
             contains_text("--interval must be 100ms or more, got 99ms"));
  CHECK(site.run("show " + key + " --quota 5/fortnight").code == 2);
}

TEST_CASE("show prints twenty rows and how many more there are, and JSON has all", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const ConcurrencyLimiter jobs(*site.store, "jobs", 25);
  std::vector<Lease> leases;
  for (int i = 0; i < 25; ++i) leases.push_back(jobs.try_acquire("a"));
  const std::string text = site.run("show '{a}:jobs'").output;
  CHECK_THAT(text, contains_text("and 5 more"));
  std::size_t rows = 0;
  for (auto at = text.find("weight 1"); at < text.size(); at = text.find("weight 1", at + 1))
    ++rows;
  CHECK(rows == 20);
  CHECK(json_lines(site.run("show '{a}:jobs' --json").output).at(0)["leases"].size() == 25);
}

TEST_CASE("peek says whether a request would be granted, and changes nothing", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const TokenBucket bucket(*site.store, "api", Quota::per_day(5));
  REQUIRE(bucket.try_acquire("a", 3).allowed);
  const std::string key = "'{a}:api:5/day'";
  const std::string before = site.client({"GET", "{a}:api:5/day"}).text;

  CHECK(site.run("peek " + key).code == 2);
  const Ran granted = site.run("peek " + key + " --limit 5 --cost 2");
  CHECK(granted.code == 0);
  CHECK_THAT(granted.output, contains_text("a token bucket of 2: granted now"));
  const Ran refused = site.run("peek " + key + " --limit 5 --cost 3 --json");
  CHECK(refused.code == 1);
  const json answer = json_lines(refused.output).at(0);
  CHECK(answer["granted"] == false);
  CHECK(answer["remaining"] == 2);
  const Word told = answer["retry_after_us"];
  const Word known = bucket.peek("a", 3).retry_after.count();
  CHECK(told >= known);
  CHECK(told < known + 60'000'000);
  const Ran impossible = site.run("peek " + key + " --limit 5 --cost 6");
  CHECK(impossible.code == 1);
  CHECK(site.client({"GET", "{a}:api:5/day"}).text == before);
}

TEST_CASE("watch shows a key again, also while it is not there", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  CHECK_THAT(site.run("watch '{a}:jobs' --times 2 --interval 100ms").output,
             contains_text("no such key"));
  const ConcurrencyLimiter jobs(*site.store, "jobs", 5);
  Lease lease = jobs.try_acquire("a");
  const Ran watched = site.run("watch '{a}:jobs' --times 2 --interval 100ms --json");
  CHECK(watched.code == 0);
  CHECK(json_lines(watched.output).size() == 2);
  CHECK(json_lines(watched.output).at(1)["held"] == 1);
  const Ran wrong = site.run("watch '{a}:jobs' --times 1 --limit 1,2");
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.output, contains_text("the key has one limit, got 2"));
}

TEST_CASE("Ctrl-C ends watch with what was shown, and 130", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const ConcurrencyLimiter jobs(*site.store, "jobs", 5);
  Lease lease = jobs.try_acquire("a");
  // The shell tells its id, and becomes the program.
  const std::string line = "SLUICE_REDIS='" + site.url + "'; export SLUICE_REDIS; echo $$; exec '" +
                           std::string(SLUICE_TOOL) + "' watch '{a}:jobs' --interval 1h";
  std::FILE* const pipe = ::popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char text[256];
  REQUIRE(std::fgets(text, sizeof text, pipe) != nullptr);
  const pid_t pid = std::stoi(text);
  REQUIRE(std::fgets(text, sizeof text, pipe) != nullptr);
  CHECK_THAT(text, contains_text("1 held"));
  CHECK(::kill(pid, SIGINT) == 0);
  CHECK(std::fgets(text, sizeof text, pipe) == nullptr);
  const int status = ::pclose(pipe);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
}

TEST_CASE("top has the keys that are used most, by their limits where these are known", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const TokenBucket bucket(*site.store, "api", Quota::per_day(100));
  const SlidingWindow windows(*site.store, "w", {{10, 1h}});
  for (int i = 1; i <= 20; ++i) {
    REQUIRE(bucket.try_acquire("k" + std::to_string(i), i).allowed);
  }
  REQUIRE(windows.try_acquire("w", 5).allowed);
  const auto keys_of = [](const Ran& ran) {
    std::vector<std::string> keys;
    for (const json& line : json_lines(ran.output)) {
      if (line.contains("key")) keys.push_back(line["key"]);
    }
    return keys;
  };
  using Keys = std::vector<std::string>;
  CHECK(keys_of(site.run("top --json --most 3")) ==
        Keys{"{w}:w:1h,grants", "{k20}:api:100/day", "{k19}:api:100/day"});
  CHECK(keys_of(site.run("top --json --most 2 --quota 100/d")) ==
        Keys{"{w}:w:1h,grants", "{k20}:api:100/day"});  // half, and a fifth
  CHECK(keys_of(site.run("top --json '{k1*'")).size() == 10);
}

TEST_CASE("what the user may not do or read ends with 2 and the right, whatever was listed",
          "[redis]") {
  if (redis_left_out()) return;
  Site site;
  for (const char* const name : {"api", "other"}) {
    REQUIRE(TokenBucket(*site.store, name, Quota::per_day(5)).try_acquire("a").allowed);
  }
  const std::string url = "unix://ops:secret@" + site.server.unix_socket();
  const std::string key = "'{a}:api:5/day'";
  struct Row {
    std::string rights;
    std::string words;
    std::string why;
  };
  for (const auto& [rights, words, why] : std::vector<Row>{
           {"+get ~*", "keys", ": SCAN: NOPERM"},
           {"+get +scan ~*", "keys '{a}*'", ": TIME: NOPERM"},
           {"+get +scan +time ~*", "keys '{a}*'", "2 keys may not be read by this user"},
           {"+get +scan +time ~*", "top", "who needs +get +getrange for each"},
           {"+get +scan +time ~*", "export /nowhere/states", "2 keys may not be read"},
           {"+@all ~{a}:api*", "keys", "1 key may not be read"},
           {"+time ~*", "show " + key, ": GET: NOPERM"},
           {"+time ~*", "watch --times 1 " + key, ": GET: NOPERM"},
           {"+get ~*", "show " + key, ": TIME: NOPERM"}}) {
    INFO(rights << ": " << words);
    std::istringstream stream("ACL SETUSER ops reset on >secret " + rights);
    const std::vector<std::string> command(std::istream_iterator<std::string>(stream), {});
    REQUIRE_FALSE(site.client.command(std::vector<std::string_view>(command.begin(), command.end()))
                      .is_error());
    const Ran ran = sluice_tool(url, words);
    CHECK(ran.code == 2);
    CHECK_THAT(ran.output, contains_text("sluice: ") && contains_text(why));
  }
  // The line of those who wait is left out instead.
  site.client({"ACL", "SETUSER", "ops", "reset", "on", ">secret", "+@all", "~{a}:api*"});
  CHECK(sluice_tool(url, "show " + key).code == 0);
  CHECK(sluice_tool(url, "keys '{a}:api*'").code == 0);
}

TEST_CASE("bad input is 2, a server that cannot be reached 3, and no password is shown",
          "[redis]") {
  if (redis_left_out()) return;
  RedisServer server({.password = "hunter2hunter2"});
  const auto port = std::to_string(server.port());
  const auto ran = [&](const std::string& login, const std::string& words) {
    return sluice_tool("redis://" + login + "127.0.0.1:" + port, words);
  };
  CHECK(ran(":hunter2hunter2@", "keys").code == 0);
  const Ran refused = ran(":hunter3hunter3@", "keys");
  CHECK(refused.code == 3);
  CHECK_THAT(refused.output, contains_text("login at 127.0.0.1:" + port));
  CHECK(refused.output.find("hunter") == std::string::npos);
  CHECK(ran("", "keys").code == 3);
  CHECK(sluice_tool("redis://:hunter2@", "keys").code == 2);
  CHECK(sluice_tool("redis://127.0.0.1:1", "show '{a}:b'").code == 3);
  CHECK(ran(":hunter2hunter2@", "show '{a}:b'").code == 2);
  CHECK(ran(":hunter2hunter2@", "show").code == 2);
  CHECK_THAT(ran(":hunter2hunter2@", "kyes").output, contains_text("did you mean keys?"));
  server.suspend();
  CHECK(ran(":hunter2hunter2@", "keys").code == 3);
  server.resume();
}

}  // namespace
}  // namespace sluice::test
