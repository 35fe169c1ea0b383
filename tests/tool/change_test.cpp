// reset, block, open and close on a real server.
#include <fmt/format.h>

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

TEST_CASE("reset makes the limit start anew, and wakes who waits", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  RedisOptions options = options_of(site.server);
  options.key_prefix = "p:";
  const auto store = make_redis_store(std::move(options));
  const TokenBucket bucket(*store, "api", Quota::per_day(5));
  REQUIRE(bucket.try_acquire("a", 5).allowed);
  const std::string line = detail::wait_line_name(bucket.acquire_step("a").key);
  const Key waits{"a", std::string_view(line)};
  REQUIRE(
      decide(*store, Step{&wait_line_enter, waits, {word_limit, 7, 1, 600'000'000, 1}}).allowed);
  const std::string woken = detail::wake_up_name(line, 7, detail::Woken::by_release);
  const std::string channel = "p:" + render(Key{"a", std::string_view(woken)});
  RedisClient listener(site.server.unix_socket());
  listener({"SUBSCRIBE", channel});

  const Ran ran = site.run("reset 'p:{a}:api:5/day' --yes --limit 5 --json");
  CHECK(ran.code == 0);
  const json changed = json_lines(ran.output).at(0);
  CHECK(changed["changed"] == "reset");
  CHECK(changed["before"] == "a token bucket, 5 of 5 used");
  CHECK(listener.read().elements.at(1).text == channel);
  CHECK(bucket.try_acquire("a", 5).allowed);
  CHECK(site.run("reset '{a}:api:5/day' --yes").code == 2);
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
  const ConcurrencyLimiter jobs(*site.store, "jobs", 5);
  Lease lease = jobs.try_acquire("a");
  const std::string before = site.client({"GET", "{a}:api:1/s"}).text;
  const auto refused = [&](const std::string& words, const std::string& why) {
    const Ran ran = site.run("block --yes " + words);
    INFO(ran.output);
    CHECK(ran.code == 2);
    CHECK_THAT(ran.output, contains_text(why));
    CHECK(ran.output.find("block {") == std::string::npos);  // as if it were done
  };
  refused("'{a}:api:1/s' --for 10s", "give --quota or --limit");
  refused("'{a}:jobs' --for 1000000h", "leases cannot be blocked for ");
  refused("'{a}:api:1/s' --for 61s --limit 1", "a minute at most");
  refused("'{a}:api:1/s' --for soon --limit 1", "got \"soon\"");
  refused("'{a}:api:1/s' --limit 1", "--for is required");
  refused("'{shedder}:utilization' --for 10s", "a utilization has no block");
  refused("'{b}:api:1/s' --for 10s --limit 1", "there is no key");
  const std::string long_tag(Key::max_plain_bytes + 1, 'x');
  REQUIRE(bucket.try_acquire(long_tag).allowed);
  refused("'" + render(bucket.acquire_step(long_tag).key) + "' --for 10s --limit 1",
          "whose key contains a hash is blocked by its limiter alone");
  site.client({"SET", "{a}:api:60/min", before});  // which limiters write as 1/s
  refused("'{a}:api:60/min' --for 10s --limit 1", "of this unit cannot be blocked");
  CHECK(site.client({"GET", "{a}:api:1/s"}).text == before);
}

TEST_CASE("no change is made without a yes, and each tells what it did", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const TokenBucket bucket(*site.store, "api", Quota::per_day(5));
  REQUIRE(bucket.try_acquire("a", 3).allowed);
  const ConcurrencyLimiter jobs(*site.store, "jobs", 5);
  Lease lease = jobs.try_acquire("a");
  const Gates gates(*site.store, "adwords", {"account"}, {.ramp = 0s, .spacing = 0s});
  const Scope closed = gates.scope("account", "closed");
  gates.close(closed, 30min);
  const auto contents = [&] {
    std::map<std::string, std::string> keys;
    for (const RedisReply& key : site.client({"KEYS", "*"}).elements) {
      keys[key.text] = site.client({"GET", key.text}).text;
    }
    return keys;
  };
  struct Change {
    std::string verb;
    std::string key;
    std::string span;
    std::string before;
  };
  const std::vector<Change> changes{
      {"reset", "{a}:api:5/day", "", "a token bucket, 3 used"},
      {"block", "{a}:jobs", " --for 10min", "leases, 1 held"},
      {"open", "{adwords}:account=closed", "", "a gate, closed for "},
      {"close", "{adwords}:account=open", " --for 10min", "a gate, open"}};
  const auto before = contents();
  CHECK(before.size() == 3);
  for (const Change& each : changes) {
    const std::string words = each.verb + " '" + each.key + "'" + each.span;
    const Ran asked = shell(site.url, "\"$SLUICE\" " + words + " 2>&1 </dev/null");
    INFO(asked.output);
    CHECK(asked.code == 2);
    CHECK_THAT(asked.output, contains_text(each.verb + " " + each.key) &&
                                 contains_text(" at unix://") && contains_text(each.before) &&
                                 contains_text("nobody can be asked here: give --yes"));
    CHECK(contents() == before);
  }
  // A terminal is asked.
  const auto answer = [&](const std::string& word) {
    return shell(
        site.url,
        "printf '" + word + "\\n' | script -qec \"$SLUICE reset '{a}:api:5/day'\" /dev/null 2>&1");
  };
  for (const char* const word : {"no", "y"}) {
    const Ran refused = answer(word);
    CHECK(refused.code == 2);
    CHECK_THAT(refused.output, contains_text("nothing was changed"));
    CHECK(contents() == before);
  }
  CHECK_THAT(answer("yes").output, contains_text("yes?"));
  CHECK(site.client({"EXISTS", "{a}:api:5/day"}).integer == 0);
  REQUIRE(bucket.try_acquire("a", 3).allowed);
  for (const Change& each : changes) {
    const Ran done = site.run(each.verb + " '" + each.key + "'" + each.span + " --yes --json");
    INFO(done.output);
    CHECK(done.code == 0);
    const std::vector<json> lines = json_lines(done.output);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].size() == 3);
    CHECK(lines[0]["key"] == each.key);
    CHECK(lines[0]["changed"] == each.verb);
    CHECK_THAT(lines[0]["before"].get<std::string>(), contains_text(each.before));
  }
  CHECK(gates.pass(closed).allowed);
  CHECK(gates.pass(gates.scope("account", "open")).retry_after > 9min);
  CHECK(jobs.try_acquire("a").decision().retry_after > 9min);
}

TEST_CASE("a gate is closed and opened, and nothing else is", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const Gates gates(*site.store, "adwords", {"account"}, {.ramp = 0s, .spacing = 0s});
  const Scope scope = gates.scope("account", "one two");
  const std::string key = "'{adwords}:account=one%20two'";
  CHECK(render(scope.key()) == "{adwords}:account=one%20two");
  // Longer than a GateOptions::cap by default.
  CHECK_THAT(site.run("close " + key + " --for 30h --yes").output,
             contains_text("for 30h at") && contains_text("a gate, open"));
  CHECK(gates.pass(scope).retry_after > 29h);
  CHECK_THAT(site.run("show " + key).output, contains_text("a gate, closed for"));
  CHECK_THAT(site.run("block " + key + " --for 1s --yes").output, contains_text("sluice close"));
  CHECK_THAT(site.run("open " + key + " --yes").output, contains_text("a gate, closed for"));
  CHECK(gates.pass(scope).allowed);
  site.client({"SET", "{adwords}:a=b", "x"});
  for (const char* const other : {"account", "a=b", "c=", "=d", "e=f:10/s"}) {
    INFO(other);
    CHECK(site.run(fmt::format("close '{{adwords}}:{}' --for 1s --yes", other)).code == 2);
  }
}

}  // namespace
}  // namespace sluice::test
