// Lists of limits: what they reject, and how they differ.
#include <string>
#include <vector>

#include "sluice/limit_table.hpp"
#include "tests/support/refusals.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST_CASE("each key and each tier stands once in a list", "[tables]") {
  LimitList list(Quota::per_second(10));
  list.tier("gold", Quota::per_second(100)).assign("alice", "gold").limit("bob", Quota::never());
  const LimitList before = list;
  CHECK(refusal([&] { list.tier("gold", Quota::per_second(5)); }) ==
        "tier \"gold\" stands twice: with 100/s and with 5/s");
  CHECK(refusal([&] { list.limit("alice", Quota::per_second(5)); }) ==
        "key \"alice\" stands twice: with tier \"gold\" and with 5/s");
  CHECK(refusal([&] { list.assign("bob", "gold"); }) ==
        "key \"bob\" stands twice: with never and with tier \"gold\"");
  CHECK(refusal([&] { list.allow("bob"); }) ==
        "key \"bob\" stands twice: with never and with unlimited");
  CHECK(refusal([&] { list.deny("alice"); }) ==
        "key \"alice\" stands twice: with tier \"gold\" and with never");
  CHECK(list == before);
}

TEST_CASE("a tier that does not exist is named with the nearest one", "[tables]") {
  LimitList list(100);
  list.tier("gold", 1000).tier("silver", 500);
  CHECK(refusal([&] { list.assign("a", "glod"); }) ==
        "key \"a\": there is no tier \"glod\"; did you mean \"gold\"?");
  CHECK(refusal([&] { list.assign("a", "platinum"); }) ==
        "key \"a\": there is no tier \"platinum\"");
  CHECK(refusal([&] { list.assign("a", std::string(1 << 20, 'x')); }).size() < 200);
  CHECK(list.rows().empty());
}

TEST_CASE("names of tiers and keys have 1 byte to 1 MiB", "[tables]") {
  LimitList list(100);
  const std::string longest(Key::max_part_bytes, 'k');
  CHECK(refusal([&] { list.limit("", 1); }) ==
        "the name of a key must be 1 byte to 1 MiB long, got 0 bytes");
  CHECK(refusal([&] { list.limit(longest + "k", 1); }) ==
        "the name of a key must be 1 byte to 1 MiB long, got 1048577 bytes");
  CHECK(refusal([&] { list.tier("", 1); }) ==
        "the name of a tier must be 1 byte to 1 MiB long, got 0 bytes");
  list.limit(longest, 1);
  CHECK(list.rows().size() == 1);
}

TEST_CASE("limits out of range are rejected with whose they are", "[tables]") {
  CHECK(refusal([] { (void)LimitList(-1); }) ==
        "everyone: the limit must be 0 to 2^40, or unlimited, got -1");
  LimitList counts(Word{1} << 40);
  counts.limit("a", unlimited).limit("b", 0);
  CHECK(refusal([&] { counts.limit("c", (Word{1} << 40) + 1); }) ==
        "key \"c\": the limit must be 0 to 2^40, or unlimited, got 1099511627777");
  CHECK(refusal([&] { counts.tier("t", unlimited - 1); }).rfind("tier \"t\": the limit must", 0) ==
        0);

  LimitList windows(WindowLimits{{10, 1s}, {100, 1min}});
  CHECK(refusal([&] {
          windows.limit("a", {{10, 1s}});
        }) ==
        "key \"a\": the windows must have the spans of everyone's, 10/1s+100/1min, got 10/1s");
  CHECK(refusal([&] {
          windows.limit("a", {{10, 1min}, {100, 1s}});
        }).rfind("key \"a\": the windows must have the spans", 0) == 0);
  CHECK(refusal([&] {
          windows.tier("t", {{-1, 1s}, {100, 1min}});
        }).rfind("tier \"t\": sliding windows: window 0: the limit must be", 0) == 0);
  CHECK(windows.rows().empty());
}

TEST_CASE("quotas of a table have periods that divide its unit, and bursts that fit", "[tables]") {
  LimitList list(Quota::per_second(10));
  CHECK(list.unit() == 1min);
  list.limit("slow", Quota::per_minute(1)).limit("odd", Quota::per(7, 3s));
  CHECK(refusal([&] { list.limit("a", Quota::per_hour(1)); }) ==
        "key \"a\": the period must divide the unit in a table of quotas per 1min, got 1/h");
  CHECK(refusal([&] { list.limit("a", Quota::per(5, 7s)); }) ==
        "key \"a\": the period must divide the unit in a table of quotas per 1min, got 1/1400ms:5");
  list.limit("large", Quota::per_second(1).burst(37'529'996));
  CHECK(refusal([&] { list.limit("a", Quota::per_second(1).burst(37'529'997)); }) ==
        "key \"a\": the burst must be at most 37529996 at this rate in a table of quotas per 1min, "
        "got 1/s:37529997");
  CHECK(refusal([&] {
          list.limit("a", Quota::per(Word{1} << 50, 1us).burst(1));
        }).find("the burst must be at most 0 at this rate") != std::string::npos);

  LimitList daily(Quota::per_day(1000), 24h);
  daily.limit("a", Quota::per_hour(7)).limit("b", Quota::per_second(1));
  CHECK(refusal([] { (void)LimitList(Quota::per_day(1)); }) ==
        "everyone: the period must divide the unit in a table of quotas per 1min, got 1/day");
  for (const Span unit : {Span{0}, Span{-1}, Span{24h + 1us}}) {
    CHECK(refusal([&] {
            (void)LimitList(Quota::per_second(1), unit);
          }).rfind("the unit of a table of quotas must be 1 us to 1 day", 0) == 0);
  }
}

TEST_CASE("the difference of two lists names what changes, and nothing else", "[tables]") {
  LimitList from(Quota::per_second(10));
  from.tier("gold", Quota::per_second(100)).tier("old", Quota::per_second(1));
  from.assign("alice", "gold").limit("bob", Quota::per_minute(3)).deny("mallory").allow("health");
  LimitList to(Quota::per_second(5).burst(10));
  to.tier("gold", Quota::per_second(200)).tier("new", Quota::per_second(1));
  to.limit("alice", Quota::per_minute(3)).deny("mallory").assign("carol", "gold").deny("health");
  CHECK(difference(from, to) == Lines{
                                    "everyone: 10/s -> 5/s:10",
                                    "tier \"gold\": 100/s -> 200/s",
                                    "tier \"new\": none -> 1/s",
                                    "tier \"old\": 1/s -> none",
                                    "key \"alice\": tier \"gold\" -> 3/min",
                                    "key \"bob\": 3/min -> as everyone",
                                    "key \"carol\": as everyone -> tier \"gold\"",
                                    "key \"health\": unlimited -> never",
                                });
  CHECK(difference(from, from).empty());
  const Quota one = Quota::per_second(1);
  CHECK(difference(LimitList(one), LimitList(one, 1h)) == Lines{"unit: 1min -> 1h"});

  LimitList windows(WindowLimits{{10, 1s}, {100, 1min}});
  LimitList others = windows;
  others.allow("a").limit("b", {{unlimited, 1s}, {5, 1min}});
  CHECK(difference(windows, others) ==
        Lines{"key \"a\": as everyone -> unlimited/1s+unlimited/1min",
              "key \"b\": as everyone -> unlimited/1s+5/1min"});
}

TEST_CASE("a table keeps its list if the new one is of another kind", "[tables]") {
  QuotaTable quotas{LimitList(Quota::per_second(10))};
  CHECK(refusal([&] { quotas.replace(LimitList(Quota::per_hour(10), 1h)); }) ==
        "the new list of a table must have the same unit: it has 10/h for everyone, the table "
        "10/s");
  CHECK(quotas.list() == LimitList(Quota::per_second(10)));
  LimitTable windows{LimitList(WindowLimits{{10, 1s}})};
  CHECK(refusal([&] {
          windows.replace(LimitList(WindowLimits{{10, 2s}}));
        }) ==
        "the new list of a table must have the same spans of windows: it has 10/2s for everyone, "
        "the table 10/1s");
  CHECK(windows.limit_of("a") == WindowLimits{{10, 1s}});
}

TEST_CASE("replace() returns the difference, and a table tells the limit of each key", "[tables]") {
  LimitList list(100);
  list.tier("gold", 1000).assign("alice", "gold").limit("bob", 5);
  LimitTable table(list);
  CHECK(table.limit_of("alice") == 1000);
  CHECK(table.limit_of("bob") == 5);
  CHECK(table.limit_of("carol") == 100);
  CHECK(table.replace(list).empty());
  LimitList next(200);
  CHECK(table.replace(next) == Lines{"everyone: 100 -> 200", "tier \"gold\": 1000 -> none",
                                     "key \"alice\": tier \"gold\" -> as everyone",
                                     "key \"bob\": 5 -> as everyone"});
  CHECK(table.limit_of("alice") == 200);
  CHECK(table.list() == next);
}

}  // namespace sluice::test
