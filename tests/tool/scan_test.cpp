// A scan of many keys, with garbage among them, on a server that others use.
#include <algorithm>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

/// Fills a server: `keys` token buckets, every tenth of which is something else.
struct Filled {
  std::uint64_t buckets = 0;
  std::uint64_t lists = 0;
  std::uint64_t values = 0;
  std::uint64_t words = 0;
  std::uint64_t names = 0;

  Filled(RedisClient& client, std::uint64_t keys) {
    const Word now = client.time_us();
    const auto value = [](Word spent, Word stamp) {
      return tool::encode_state({StateKind::token_bucket, {spent, stamp}});
    };
    const std::string sound = value(2 * 3'000'000, now);
    const std::string unsound = value(-1, now);
    std::uint64_t sent = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::string key = "{user" + std::to_string(i) + "}:api:1/s";
      switch (i % 40) {
        case 0:
          client.append({"RPUSH", key, "x"});
          ++lists;
          break;
        case 10:
          client.append({"SET", key, "a foreign value"});
          ++values;
          break;
        case 20:
          client.append({"SET", key, unsound});
          ++words;
          break;
        case 30:
          client.append({"SET", "session:" + std::to_string(i), "{}"});
          ++names;
          break;
        default:
          client.append({"SET", key, sound, "PX", "86400000"});
          ++buckets;
      }
      if (++sent - read_ == 1'000) read(client, sent);
    }
    read(client, sent);
  }

 private:
  void read(RedisClient& client, std::uint64_t sent) {
    for (; read_ < sent; ++read_) REQUIRE_FALSE(client.read().is_error());
  }
  std::uint64_t read_ = 0;
};

void check_totals(const json& totals, const Filled& filled) {
  CHECK(totals["keys"] == filled.buckets);
  CHECK(totals["kinds"]["token_bucket"]["keys"] == filled.buckets);
  const json& foreign = totals["foreign_kinds"];
  CHECK(foreign["of another type"]["keys"] == filled.lists);
  CHECK(foreign["of another value"]["keys"] == filled.values);
  CHECK(foreign["with words that no rule writes"]["keys"] == filled.words);
  CHECK(foreign["of another name"]["keys"] == filled.names);
  CHECK(totals["foreign"] == filled.lists + filled.values + filled.words + filled.names);
}

TEST_CASE("all keys are seen, and garbage is counted and named", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const Filled filled(site.client, 10'000);
  const Ran ran = site.run("keys --json");
  CHECK(ran.code == 0);
  const auto lines = json_lines(ran.output);
  REQUIRE(lines.size() == filled.buckets + 1);
  check_totals(lines.back()["totals"], filled);
  const Ran text = site.run("keys");
  CHECK_THAT(text.output, contains_text("9,000 keys of limiters") &&
                              contains_text("a token bucket: 9,000, such as {user") &&
                              contains_text("1,000 keys of others") &&
                              contains_text("of another type: 250, such as {user"));
}

TEST_CASE("a prefix and a pattern choose keys", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server;
  const std::string url = url_of(server);
  for (const char* const prefix : {"app*:", "appx:", ""}) {
    RedisOptions options = options_of(server);
    options.key_prefix = prefix;
    const auto store = make_redis_store(options);
    const TokenBucket bucket(*store, "api", Quota::per_second(1));
    REQUIRE(bucket.try_acquire("alice").allowed);
    REQUIRE(bucket.try_acquire("bob").allowed);
  }
  const auto keys = [&](const std::string& words) {
    return json_lines(sluice_tool(url, "keys --json " + words).output).size() - 1;
  };
  CHECK(keys("") == 6);
  CHECK(keys("--prefix 'app*:'") == 2);  // no glob
  CHECK(keys("--prefix appx: '*bob*'") == 1);
  CHECK(keys("'*bob*'") == 3);
  CHECK(sluice_tool(url, "show 'app*:{bob}:api:1/s' --quota 1/s").code == 0);
}

TEST_CASE("a pipe that closes ends it quietly", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const Filled filled(site.client, 4'000);
  const Ran ran =
      shell(site.url, "exec 2>&1; { \"$SLUICE\" keys; echo \"ended $?\" >&2; } | head -n 1");
  CHECK_THAT(ran.output, contains_text("a token bucket") && contains_text("ended 141\n"));
  CHECK(std::count(ran.output.begin(), ran.output.end(), '\n') == 2);
  const Ran watched = shell(site.url,
                            "exec 2>&1; { \"$SLUICE\" watch '{no}:such' --interval 100ms; echo "
                            "\"ended $?\" >&2; } | head -n 1");
  CHECK_THAT(watched.output, contains_text("no such key\n") && contains_text("ended 141\n"));
  CHECK(std::count(watched.output.begin(), watched.output.end(), '\n') == 2);
}

TEST_CASE("output that cannot be written is one error, with its cause", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const TokenBucket bucket(*site.store, "api", Quota::per_second(1));
  const std::string key = "'{a0}:api:1/s'";
  REQUIRE(bucket.try_acquire("a0").allowed);
  const auto check = [&](const std::string& words) {
    INFO(words);
    const Ran ran = shell(site.url, "\"$SLUICE\" " + words + " 2>&1 >/dev/full");
    INFO(ran.output);
    CHECK(ran.code == 2);
    CHECK_THAT(ran.output, contains_text("No space left on device\n"));
    CHECK(std::count(ran.output.begin(), ran.output.end(), '\n') == 1);
  };
  for (const char* const words : {"keys", "top", "keys --json", "doctor"}) check(words);
  check("show " + key);
  check("watch --times 2 " + key);
  // More than a buffer of the output, which is written before the end.
  for (int i = 1; i < 300; ++i) REQUIRE(bucket.try_acquire("a" + std::to_string(i)).allowed);
  for (const char* const words : {"keys", "top --most 300", "keys --json"}) check(words);
}

TEST_CASE("large states are read whole", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const SlidingWindow windows(*site.store, "w", {{1'000, 1h}});
  for (int i = 0; i < 500; ++i) REQUIRE(windows.try_acquire("a").allowed);
  const auto lines = json_lines(site.run("keys --json").output);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["used"] == 500);
  CHECK(lines[0]["limit"] == 1'000);
}

TEST_CASE("a million keys are listed", "[.][long]") {
  if (redis_left_out()) return;
  Site site;
  const Filled filled(site.client, 1'000'000);
  const Ran ran = site.run("keys --json | tail -n 1");
  check_totals(json_lines(ran.output).at(0)["totals"], filled);
}

}  // namespace
}  // namespace sluice::test
