// --table: the limits of keys by a list in a TOML file, on a real server.
#include "sluice/config/limit_file.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/temporary_file.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* limits = R"([api]
everyone = "10/h:20"
unit = "1h"
tiers.gold = { limit = "100/h:200", keys = ["alice"] }
deny = ["mallory"]
[jobs]
everyone = 5
keys.alice = 50
allow = ["mallory"]
[partner]
everyone = ["400/1h", "25/1min"]
keys.alice = ["900/1h", "30/1min"]
deny = ["mallory"]
[minutes]
everyone = "10/min"
[single]
everyone = ["25/1min"]
[broken]
everyone = "10/s"
keys.bob = "10/fortnight"
[senseless]
everyone = true
[own]
everyone = "5/day"
unit = "1day"
)";

/// A site whose limiters count with the lists of a file.
struct Tables : Site {
  TemporaryFile file;

  Tables() { file.write(limits); }

  Ran with(const std::string& words, const std::string& list) {
    return run(words + " --table " + file.path + ":" + list);
  }
  json one(const std::string& words, const std::string& list) {
    const Ran ran = with(words + " --json", list);
    INFO(ran.output);
    REQUIRE(ran.code == 0);
    return json_lines(ran.output).at(0);
  }
  [[nodiscard]] TokenBucket bucket() const {
    const config::LimitFile lists(file.path);
    return {*store, "api", std::make_shared<QuotaTable>(lists.quotas("api"))};
  }
};

TEST_CASE("a table gives each key the limit of its tier", "[redis]") {
  if (redis_left_out()) return;
  Tables site;
  const TokenBucket bucket = site.bucket();
  REQUIRE(bucket.try_acquire("bob", 10).allowed);
  REQUIRE(bucket.try_acquire("alice", 150).allowed);
  REQUIRE(bucket.try_acquire(std::string(Key::max_plain_bytes + 1, 'x')).allowed);  // of a hash
  const SlidingWindow windows(*site.store, "w", {{25, 1min}, {400, 1h}});
  REQUIRE(windows.try_acquire("bob", 24).allowed);

  const auto top = json_lines(site.with("top --json", "api").output);
  REQUIRE(top.size() == 4);
  CHECK(top[0]["key"] == "{alice}:api:table/1h");
  CHECK(top[0]["limit"] == 200);
  CHECK(top[0]["used"] == 150);
  CHECK(top[1]["key"] == "{bob}:api:table/1h");
  CHECK(top[1]["limit"] == 20);
  CHECK(top[1]["used"] == 10);
  CHECK_FALSE(top[2].contains("limit"));  // windows have no quota
  const auto by_windows = json_lines(site.with("top --json", "partner").output);
  REQUIRE(by_windows.size() == 2);
  CHECK(by_windows[0]["key"] == "{bob}:w:1min+1h,grants");
  CHECK(by_windows[0]["limit"] == 25);

  CHECK_THAT(site.with("show '{alice}:api:table/1h'", "api").output,
             contains_text("150 of 200 used") && contains_text("remaining      50"));
  CHECK_THAT(site.with("show '{bob}:api:table/1h'", "api").output, contains_text("10 of 20 used"));
  CHECK(site.one("watch --times 1 '{bob}:api:table/1h'", "api")["limit"] == 20);
  CHECK(site.with("peek '{alice}:api:table/1h' --cost 50", "api").code == 0);
  CHECK(site.with("peek '{alice}:api:table/1h' --cost 52", "api").code == 1);

  CHECK(bucket.try_acquire("alice").allowed);
  const Ran blocked = site.with("block '{alice}:api:table/1h' --for 50s --yes", "api");
  INFO(blocked.output);
  CHECK(blocked.code == 0);
  CHECK(bucket.try_acquire("alice").retry_after > 40s);
  CHECK(bucket.try_acquire("bob").allowed);
}

TEST_CASE("the kind of the state chooses the type of the list", "[redis]") {
  if (redis_left_out()) return;
  Tables site;
  Store& store = *site.store;
  const SlidingWindow windows(store, "w", {{25, 1min}, {400, 1h}});
  const SlidingWindowCounter counter(store, "counter", {50, 1h});
  const FixedWindow window(store, "window", 50, Calendar::yearly());
  const ConcurrencyLimiter jobs(store, "jobs", 50);
  const TokenBucket own(store, "own", Quota::per_day(5));
  std::vector<Lease> leases;
  for (const char* const who : {"alice", "bob"}) {
    REQUIRE(windows.try_acquire(who).allowed);
    REQUIRE(counter.try_acquire(who).allowed);
    REQUIRE(window.try_acquire(who).allowed);
    REQUIRE(own.try_acquire(who).allowed);
    leases.push_back(jobs.try_acquire(who));
  }
  const json alice = site.one("show '{alice}:w:1min+1h,grants'", "partner");
  CHECK(alice["windows"][0]["limit"] == 30);
  CHECK(alice["windows"][1]["limit"] == 900);
  const json bob = site.one("show '{bob}:w:1min+1h,grants'", "partner");
  CHECK(bob["windows"][0]["limit"] == 25);
  CHECK(bob["windows"][1]["limit"] == 400);
  for (const std::string key : {":counter:1h'", ":window:yearly@UTC'", ":jobs'"}) {
    INFO(key);
    CHECK(site.one("show '{alice}" + key, "jobs")["limit"] == 50);
    CHECK(site.one("show '{bob}" + key, "jobs")["limit"] == 5);
  }
  CHECK(site.one("show '{bob}:own:5/day'", "own")["limit"] == 5);
}

TEST_CASE("a table tells that a key is never or always admitted", "[redis]") {
  if (redis_left_out()) return;
  Tables site;  // it has counted before
  const TokenBucket bucket(*site.store, "api",
                           std::make_shared<QuotaTable>(LimitList(Quota::per_hour(10), 1h)));
  const SlidingWindow windows(*site.store, "w", {{25, 1min}, {400, 1h}});
  const ConcurrencyLimiter jobs(*site.store, "jobs", 5);
  REQUIRE(bucket.try_acquire("mallory", 3).allowed);
  REQUIRE(windows.try_acquire("mallory").allowed);
  Lease lease = jobs.try_acquire("mallory");
  struct Case {
    std::string key;
    std::string list;
    bool is_never;
  };
  for (const auto& [key, list, is_never] : {Case{"api:table/1h", "api", true},
                                            {"w:1min+1h,grants", "partner", true},
                                            {"jobs", "jobs", false}}) {
    INFO(key);
    const json shown = site.one("show '{mallory}:" + key + "'", list);
    CHECK(shown["limit"] == (is_never ? json(0) : json("unlimited")));
    CHECK(shown["summary"] == (is_never ? "never" : "unlimited"));
    const Ran asked = site.with("peek '{mallory}:" + key + "'", list);
    CHECK(asked.code == (is_never ? 1 : 0));
    CHECK_THAT(asked.output, contains_text(is_never ? "refused, always" : "granted now"));
    const Ran blocked = site.with("block '{mallory}:" + key + "' --for 50s --yes", list);
    CHECK(blocked.code == 2);
    CHECK_THAT(blocked.output, contains_text("cannot be blocked: change the table"));
  }
}

TEST_CASE("a table that is wrong is refused with its place", "[redis]") {
  if (redis_left_out()) return;
  Tables site;
  REQUIRE(site.bucket().try_acquire("bob").allowed);
  REQUIRE(SlidingWindow(*site.store, "w", {{25, 1min}, {400, 1h}}).try_acquire("bob").allowed);
  REQUIRE(SlidingWindow(*site.store, "v", {{400, 1h}}).try_acquire("bob").allowed);
  REQUIRE(TokenBucket(*site.store, "own", Quota::per_day(6)).try_acquire("bob").allowed);
  const std::string show = "show '{bob}:api:table/1h'";
  const auto refused = [&](const Ran& ran, const std::string& why) {
    INFO(ran.output);
    CHECK(ran.code == 2);
    CHECK_THAT(ran.output, contains_text(why));
  };
  refused(site.run(show + " --table /no/such.toml:api"), "/no/such.toml: cannot be read");
  refused(site.with("top", "apj"), "did you mean api?");
  for (const char* const words : {"top", "show '{bob}:api:table/1h'"}) {
    refused(site.with(words, "broken"), "sluice: " + site.file.path + ":20: broken.keys.bob: ");
  }
  const Ran senseless = site.with("top", "senseless");
  refused(senseless, "senseless.everyone: expected a quota, as \"10/s\", got boolean");
  refused(senseless, "expected a list of windows");
  refused(site.with(show, "partner"),
          site.file.path + ":11: partner.everyone: expected a quota, as \"10/s\", got array");
  refused(site.with("watch --times 1 '{bob}:api:table/1h'", "partner"), "expected a quota");
  refused(site.with(show, "minutes"), "counted in table/1h, and the table has another unit");
  refused(site.with("show '{bob}:w:1min+1h,grants'", "single"), "and the table has others");
  refused(site.with("show '{bob}:v:1h,grants'", "partner"), "and the table has others");
  refused(site.with("show '{bob}:own:6/day'", "own"), "which is not the rate of 5/day");
  refused(site.run(show + " --table " + site.file.path), "as limits.toml:api, got ");
  refused(site.with(show + " --quota 10/h", "api"), "--quota excludes --table");
  refused(site.with(show + " --limit 10", "api"), "--limit excludes --table");
}

}  // namespace
}  // namespace sluice::test
