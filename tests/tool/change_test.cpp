// reset, block, open, close and doctor on a real server.
#include <map>
#include <thread>

#include "sluice/rules/wait_line.hpp"
#include "sluice/sluice.hpp"
#include "src/waiting/wake_up.hpp"
#include "tests/catch.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

struct Site {
  RedisServer server;
  std::string url = url_of(server);
  std::unique_ptr<RedisStore> store = make_redis_store(options_of(server));
  RedisClient client{server.unix_socket()};

  Ran run(const std::string& words) { return sluice_tool(url, words); }
};

TEST_CASE("a change wants a yes, and says what it will do", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const TokenBucket bucket(*site.store, "api", Quota::per_day(5));
  REQUIRE(bucket.try_acquire("a", 3).allowed);
  const std::string key = "'{a}:api:5/day'";
  const Ran asked = shell(site.url, "\"$SLUICE\" reset " + key + " 2>&1 </dev/null");
  CHECK(asked.code == 2);
  CHECK_THAT(asked.output, contains_text("reset {a}:api:5/day at unix://") &&
                               contains_text("a token bucket, 3 used") &&
                               contains_text("give --yes"));
  CHECK(site.client({"EXISTS", "{a}:api:5/day"}).integer == 1);
  // A terminal is asked.
  const auto answer = [&](const std::string& word) {
    return shell(site.url, "printf '" + word + "\\n' | script -qec \"$SLUICE reset " + key +
                               "\" /dev/null 2>&1");
  };
  CHECK_THAT(answer("no").output, contains_text("nothing was changed"));
  CHECK(site.client({"EXISTS", "{a}:api:5/day"}).integer == 1);
  CHECK_THAT(answer("yes").output, contains_text("yes?"));
  CHECK(site.client({"EXISTS", "{a}:api:5/day"}).integer == 0);
}

TEST_CASE("reset makes the limit start anew, and wakes who waits", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const TokenBucket bucket(*site.store, "api", Quota::per_day(5));
  REQUIRE(bucket.try_acquire("a", 5).allowed);
  const std::string line = detail::wait_line_name(bucket.acquire_step("a").key);
  const Key waits{"a", std::string_view(line)};
  REQUIRE(decide(*site.store, Step{&wait_line_enter, waits, {word_limit, 7, 1, 600'000'000, 1}})
              .allowed);
  const std::string woken = detail::wake_up_name(line, 7, detail::Woken::by_release);
  const std::string channel = render(Key{"a", std::string_view(woken)});
  RedisClient listener(site.server.unix_socket());
  listener({"SUBSCRIBE", channel});

  const Ran ran = site.run("reset '{a}:api:5/day' --yes --limit 5 --json");
  CHECK(ran.code == 0);
  const json changed = json_lines(ran.output).at(0);
  CHECK(changed["changed"] == "reset");
  CHECK(changed["before"] == "a token bucket, 5 of 5 used");
  CHECK(listener.read().elements.at(1).text == channel);
  CHECK(bucket.try_acquire("a", 5).allowed);
  CHECK(site.run("reset '{b}:api:5/day' --yes").code == 2);
}

TEST_CASE("reset keeps what is configured", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const SharedTokenBucket bucket(*site.store, "shared");
  bucket.configure("a", Quota::per_day(5));
  REQUIRE(bucket.try_acquire("a", 5).allowed);
  CHECK(site.run("reset '{a}:shared' --yes").code == 0);
  CHECK(bucket.try_acquire("a", 5).allowed);
  const SharedSlidingWindow rate(*site.store, "rate");
  rate.try_configure("a", RateType::overall, 1, 1h);
  REQUIRE(rate.try_acquire("a").allowed);
  CHECK_THAT(site.run("reset '{a}:rate' --yes").output, contains_text("without which calls fail"));
  CHECK_FALSE(rate.try_acquire("a").allowed);
  const auto keys = json_lines(site.run("keys --json '{a}:rate%3a*'").output);
  REQUIRE(keys.size() == 2);
  CHECK(keys[0]["used"] == 1);
  CHECK(site.run("reset '" + keys[0]["key"].get<std::string>() + "' --yes").code == 0);
  CHECK(rate.try_acquire("a").allowed);
}

TEST_CASE("block refuses what the limiter is asked, and leaves the rest as it is", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  Store& store = *site.store;
  const auto blocks = [&](const std::string& key, const std::string& more, auto is_allowed) {
    const std::string span = key.find("bucket") == std::string::npos ? "10min" : "50s";
    INFO(key);
    REQUIRE(is_allowed());
    const Ran ran = site.run("block '" + key + "' --for " + span + " --yes " + more);
    INFO(ran.output);
    CHECK(ran.code == 0);
    CHECK_FALSE(is_allowed());
    CHECK_THAT(site.run("show '" + key + "'").output,
               contains_text("closed for") || contains_text("next slot in"));
  };
  const TokenBucket bucket(store, "bucket", Quota::per_second(1'000),
                           {.refill = Refill::per_interval(10ms)});
  blocks("{a}:bucket:1000/s@10ms", "--limit 1000", [&] { return bucket.try_acquire("a").allowed; });
  const SlidingWindow windows(store, "windows", {{50, 1min}, {70, 1h}});
  blocks("{a}:windows:1min+1h,grants", "--limit 50,70",
         [&] { return windows.try_acquire("a").allowed; });
  const SlidingWindowCounter counter(store, "counter", {50, 1h});
  blocks("{a}:counter:1h", "", [&] { return counter.try_acquire("a").allowed; });
  const FixedWindow window(store, "window", 50, Calendar::daily());
  blocks("{a}:window:daily@UTC", "", [&] { return window.try_acquire("a").allowed; });
  const SharedTokenBucket shared(store, "shared-bucket");
  shared.configure("a", Quota::per_second(1'000));
  blocks("{a}:shared-bucket", "", [&] { return shared.try_acquire("a").allowed; });
  const SharedSlidingWindow rate(store, "rate");
  rate.try_configure("a", RateType::overall, 50, 1h);
  REQUIRE(rate.try_acquire("a").allowed);
  CHECK(site.run("block '{a}:rate' --for 10min --yes").code == 0);
  CHECK_FALSE(rate.try_acquire("a").allowed);
  const ConcurrencyLimiter jobs(store, "jobs", 50);
  blocks("{a}:jobs", "", [&] {
    Lease lease = jobs.try_acquire("a");
    lease.release_later();
    return lease.decision().allowed;
  });
  const LearnedRate learned(store, "learned");
  blocks("{a}:learned", "", [&] {
    std::this_thread::sleep_for(200ms);
    return learned.try_acquire("a").allowed;
  });
  const SlotLock slots(store, "slots", 10ms);
  blocks("{a}:slots", "", [&] {
    std::this_thread::sleep_for(20ms);
    return static_cast<bool>(slots.try_acquire("a"));
  });
}

TEST_CASE("a block that cannot be made is refused, and changes nothing", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const TokenBucket bucket(*site.store, "api", Quota::per_second(1));
  REQUIRE(bucket.try_acquire("a").allowed);
  const UtilizationShedder shedder(*site.store, "shedder");
  shedder.sample(0.9);
  const std::string before = site.client({"GET", "{a}:api:1/s"}).text;
  const auto refused = [&](const std::string& words, const std::string& why) {
    const Ran ran = site.run("block --yes " + words);
    INFO(ran.output);
    CHECK(ran.code == 2);
    CHECK_THAT(ran.output, contains_text(why));
  };
  refused("'{a}:api:1/s' --for 10s", "give --quota or --limit");
  refused("'{a}:api:1/s' --for 61s --limit 1", "a minute at most");
  refused("'{a}:api:1/s' --for soon --limit 1", "got \"soon\"");
  refused("'{a}:api:1/s' --limit 1", "--for is required");
  refused("'{shedder}:utilization' --for 10s", "a utilization has no block");
  refused("'{b}:api:1/s' --for 10s --limit 1", "there is no key");
  site.client({"SET", "{a}:api:60/min", before});  // which limiters write as 1/s
  refused("'{a}:api:60/min' --for 10s --limit 1", "of this unit cannot be blocked");
  CHECK(site.client({"GET", "{a}:api:1/s"}).text == before);
}

TEST_CASE("a gate is closed and opened, and nothing else is", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const Gates gates(*site.store, "adwords", {"account"}, {.ramp = 0s, .spacing = 0s});
  const Scope scope = gates.scope("account", "one two");
  const std::string key = "'{adwords}:account=one%20two'";
  CHECK(render(scope.key()) == "{adwords}:account=one%20two");
  CHECK_THAT(site.run("close " + key + " --for 30min --yes").output,
             contains_text("for 30m at") && contains_text("a gate, open"));
  CHECK_FALSE(gates.pass(scope).allowed);
  CHECK(gates.pass(scope).retry_after > 29min);
  CHECK_THAT(site.run("show " + key).output, contains_text("a gate, closed for"));
  CHECK_THAT(site.run("block " + key + " --for 1s --yes").output, contains_text("sluice close"));
  CHECK_THAT(site.run("open " + key + " --yes").output, contains_text("a gate, closed for"));
  CHECK(gates.pass(scope).allowed);
  CHECK(site.run("close '{adwords}:account' --for 1s --yes").code == 2);
  site.client({"SET", "{adwords}:a=b", "x"});
  CHECK(site.run("close '{adwords}:a=b' --for 1s --yes").code == 2);
}

TEST_CASE("doctor finds what a server lacks, and nothing on one that is set up", "[redis]") {
  if (redis_left_out()) return;
  const auto checks_of = [](const Ran& ran) {
    std::map<std::string, bool> fine;
    const std::vector<json> lines = json_lines(ran.output);
    for (const json& each : lines.at(0)["checks"]) fine[each["name"]] = each["fine"];
    return fine;
  };
  RedisServer good({"appendonly yes", "maxmemory-policy noeviction"});
  const Ran ran = sluice_tool(url_of(good), "doctor --json");
  INFO(ran.output);
  CHECK(ran.code == 0);
  CHECK(checks_of(ran).size() == 12);
  RedisClient client(good.unix_socket());
  CHECK(client({"DBSIZE"}).integer == 0);

  RedisServer bad({"appendonly no", "maxmemory-policy allkeys-lru", "maxmemory 100mb"});
  RedisClient admin(bad.unix_socket());
  admin({"ACL", "SETUSER", "app", "on", ">secret", "~app:*", "+@all", "-evalsha", "-publish"});
  const std::string url = "unix://app:secret@" + bad.unix_socket();
  const Ran found = sluice_tool(url, "doctor --json --prefix app:");
  INFO(found.output);
  CHECK(found.code == 1);
  auto checks = checks_of(found);
  CHECK(checks["connection"]);
  CHECK_FALSE(checks["rights"]);
  CHECK_FALSE(checks["eviction"]);
  CHECK_FALSE(checks["persistence"]);
  CHECK_FALSE(checks["call"]);
  const Ran text = shell(url, "COLUMNS=40 \"$SLUICE\" doctor --prefix app: 2>&1");
  CHECK_THAT(text.output, contains_text("EVALSHA") && contains_text("Set appendonly yes"));
  std::istringstream stream(text.output);
  for (std::string line; std::getline(stream, line);) CHECK(line.size() <= 40);
  CHECK(text.output.find("secret") == std::string::npos);
  const Ran gone = sluice_tool("redis://app:secret@127.0.0.1:1", "doctor");
  CHECK(gone.code == 3);
  CHECK_THAT(gone.output,
             contains_text("Connection refused") && contains_text("whether the server"));
}

}  // namespace
}  // namespace sluice::test
