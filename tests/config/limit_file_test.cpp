// Limits read from TOML: what is accepted, and what errors say.
#include <string>

#include "sluice/config/limit_file.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using config::LimitFile;
using namespace std::chrono_literals;

namespace {

LimitFile file(std::string_view text) { return {"limits.toml", text}; }

/// The message of the exception.
template <class Call>
std::string rejected(Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}
std::string rejected_quotas(std::string_view text) {
  return rejected([&] { (void)file(text).quotas("api"); });
}
std::string rejected_counts(std::string_view text) {
  return rejected([&] { (void)file(text).counts("jobs"); });
}
std::string rejected_windows(std::string_view text) {
  return rejected([&] { (void)file(text).windows("partner"); });
}

}  // namespace

TEST_CASE("a file has lists of quotas, counts and windows", "[config]") {
  const LimitFile limits = file(R"(
[api]
everyone = "10/s:20"
allow = ["health", "metrics"]
deny = ["mallory"]
keys.carol = "3/min"
keys."a.b" = "unlimited"

[api.tiers.gold]
limit = "100/s:200"
keys = ["alice", "bob"]
[api.tiers.empty]
limit = "never"

[slow]
everyone = "5/h"
unit = "1h"

[jobs]
everyone = 5
tiers.gold = { limit = 20, keys = ["alice"] }
keys = { bob = "unlimited", carol = "never", dave = 0 }

[partner]
everyone = ["25/5s", "400/2min"]
keys.alice = ["50/5s", "unlimited/2min"]
)");
  LimitList api(Quota::per_second(10).burst(20));
  api.tier("gold", Quota::per_second(100).burst(200)).tier("empty", Quota::never());
  api.assign("alice", "gold").assign("bob", "gold");
  api.limit("carol", Quota::per_minute(3)).limit("a.b", Quota::unlimited());
  api.allow("health").allow("metrics").deny("mallory");
  CHECK(limits.quotas("api") == api);
  CHECK(limits.quotas("slow") == LimitList(Quota::per_hour(5), 1h));
  LimitList jobs(5);
  jobs.tier("gold", 20).assign("alice", "gold");
  jobs.limit("bob", unlimited).limit("carol", 0).limit("dave", 0);
  CHECK(limits.counts("jobs") == jobs);
  LimitList partner(WindowLimits{{25, 5s}, {400, 2min}});
  partner.limit("alice", {{50, 5s}, {unlimited, 2min}});
  CHECK(limits.windows("partner") == partner);
}

TEST_CASE("an entry that nobody knows is named with its line and the nearest one", "[config]") {
  CHECK(rejected_quotas("[api]\neveryone = \"1/s\"\nalow = []\n") ==
        "limits.toml:3: api.alow: unknown; expected everyone, tiers, keys, allow, deny, unit; did "
        "you mean allow?");
  CHECK(rejected_quotas("[api]\neveryone = \"1/s\"\n[api.tiers.gold]\nlimits = \"1/s\"\n") ==
        "limits.toml:4: api.tiers.gold.limits: unknown; expected limit, keys; did you mean limit?");
  CHECK(rejected_counts("[jobs]\neveryone = 1\nunit = \"1h\"\n")
            .rfind("limits.toml:3: jobs.unit: unknown; expected everyone", 0) == 0);
  CHECK(rejected_quotas("[apis]\neveryone = \"1/s\"\n") ==
        "limits.toml:1: api: unknown; expected apis; did you mean apis?");
  CHECK(rejected_quotas("") == "limits.toml:1: api: unknown; the file has no tables");
}

TEST_CASE("what is missing or of another type is named with its line", "[config]") {
  CHECK(rejected_quotas("[api]\n") == "limits.toml:1: api: has no limit of everyone");
  CHECK(rejected_quotas("api = 3\n") == "limits.toml:1: api: expected a table, got integer");
  CHECK(rejected_quotas("[api]\neveryone = 3\n") ==
        "limits.toml:2: api.everyone: expected a quota, as \"10/s\", got integer");
  CHECK(rejected_quotas("[api]\neveryone = \"1/s\"\ndeny = \"a\"\n") ==
        "limits.toml:3: api.deny: expected a list of keys, got string");
  CHECK(rejected_quotas("[api]\neveryone = \"1/s\"\ndeny = [\n\"a\",\n3]\n") ==
        "limits.toml:5: api.deny: expected a key, as text, got integer");
  CHECK(rejected_quotas("[api]\neveryone = \"1/s\"\ntiers.gold = {}\n") ==
        "limits.toml:3: api.tiers.gold: has no limit");
  CHECK(rejected_quotas("[api]\neveryone = \"1/s\"\nunit = 60\n") ==
        "limits.toml:3: api.unit: expected a span, as \"1min\", got integer");
  CHECK(rejected_quotas("[api]\neveryone = \"1/s\"\nunit = \"\"\n") ==
        "limits.toml:3: api.unit: expected a span, as \"1min\", got \"\"");
  CHECK(rejected_windows("[partner]\neveryone = [\"25/fortnight\"]\n") ==
        "limits.toml:2: partner.everyone: expected a span, as \"1min\", got \"fortnight\"");
  CHECK(rejected_counts("[jobs]\neveryone = 1.5\n") ==
        "limits.toml:2: jobs.everyone: expected a whole number, \"never\" or \"unlimited\", got "
        "floating-point");
  CHECK(rejected_windows("[partner]\neveryone = \"25/5s\"\n") ==
        "limits.toml:2: partner.everyone: expected a list of windows, as [\"25/5s\"], got string");
  for (const std::string window : {"25", "x/5s", "25x/5s", "/5s"}) {
    CHECK(rejected_windows("[partner]\neveryone = [\"" + window + "\"]\n") ==
          "limits.toml:2: partner.everyone: expected a window, as \"25/5s\", got \"" + window +
              "\"");
  }
}

TEST_CASE("limits that are wrong or contradict others are named with their line", "[config]") {
  CHECK(rejected_quotas("[api]\neveryone = \"10/fortnight\"\n")
            .rfind("limits.toml:2: api.everyone: ", 0) == 0);
  CHECK(rejected_quotas("[api]\neveryone = \"1/day\"\n") ==
        "limits.toml:2: api.everyone: everyone: the period must divide the unit in a table of "
        "quotas per 1min, got 1/day");
  CHECK(rejected_quotas("[api]\neveryone = \"1/s\"\nkeys.a = \"2/s\"\ndeny = [\"b\", \"a\"]\n") ==
        "limits.toml:4: api.deny: key \"a\" stands twice: with 2/s and with never");
  CHECK(rejected_quotas("[api]\neveryone = \"1/s\"\nunit = \"2day\"\n")
            .rfind("limits.toml:3: api.unit: the unit of a table of quotas must be", 0) == 0);
  CHECK(rejected_counts("[jobs]\neveryone = -1\n") ==
        "limits.toml:2: jobs.everyone: everyone: the limit must be 0 to 2^40, or unlimited, got "
        "-1");
  CHECK(rejected_windows("[partner]\neveryone = [\"1/s\"]\nkeys.a = [\"1/min\"]\n") ==
        "limits.toml:3: partner.keys.a: key \"a\": the windows must have the spans of everyone's, "
        "1/1s, got 1/1min");
  CHECK(rejected_windows("[partner]\neveryone = []\n") ==
        "limits.toml:2: partner.everyone: everyone: sliding windows: 1 to 8 windows, got 0");
}

TEST_CASE("a file that is no TOML, or that is not there, is named", "[config]") {
  CHECK(rejected([] { (void)file("[api]\neveryone = \n"); }).rfind("limits.toml:2: ", 0) == 0);
  CHECK(rejected([] { (void)file("[api]\nallow = [1, 2\n"); }).rfind("limits.toml:", 0) == 0);
  CHECK(rejected([] { (void)file("\xff\xfe"); }).rfind("limits.toml:1: ", 0) == 0);
  CHECK(rejected([] { (void)LimitFile("/nowhere/limits.toml"); }) ==
        "/nowhere/limits.toml: cannot be read");
  for (const std::string path : {"/", "/dev/null"}) {
    CHECK(rejected([&] { (void)LimitFile(path); }) == path + ": is no regular file");
  }
}

}  // namespace sluice::test
