// What lies under our keys: hostile names, other people's values, garbage, and when it expires.
// Threading: the test's thread.
#include <set>

#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

std::string state(char kind, Word first, Word second) {
  std::string bytes(1, kind);
  for (const Word word : {first, second}) {
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
  }
  return bytes;
}

}  // namespace

TEST_CASE("hostile keys are keys like any other, and each is its own", "[redis][C-086]") {
  if (redis_left_out()) return;
  const RedisServer server;
  const auto store = connect_socket(server);
  const TokenBucket bucket(*store, "api", Quota::per_hour(10));
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  const std::vector<std::string> parts{"a",
                                       "a:b",
                                       "{a}",
                                       "}",
                                       "{",
                                       "\r\n",
                                       "\r\nFLUSHALL\r\n",
                                       std::string(1, '\0'),
                                       "%41",
                                       "A",
                                       all_bytes,
                                       "#",
                                       std::string(128, '{'),
                                       std::string(129, '{'),
                                       std::string(1 << 20, 'x'),
                                       std::string(1 << 20, '\n')};
  std::size_t wrong = 0;
  for (const auto& tag : parts) {
    for (const auto& name : parts)
      wrong += bucket.try_acquire(Key{tag, name}).remaining == 9 ? 0U : 1U;
  }
  CHECK(wrong == 0);
  RedisClient admin(server.unix_socket());
  CHECK(admin({"DBSIZE"}).integer == static_cast<std::int64_t>(parts.size() * parts.size()));
  for (const RedisReply& key : admin({"KEYS", "*"}).elements) {
    CHECK(key.text.size() <= 2 * 3 * 128 + 3 + 5);  // "{...}:...:10/h"
    CHECK(key.text.find_first_of("\r\n") == std::string::npos);
    CHECK(key.text.find('{', 1) == std::string::npos);
  }
  std::error_code error;
  static_cast<void>(bucket.try_acquire({std::string((1 << 20) + 1, 'x'), "y"}, error));
  CHECK(error == Errc::invalid_key);
}

TEST_CASE("every key expires, within a second of when it means nothing", "[redis][C-032]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  const auto store = connect_socket(server);
  Random random("every key expires, within a second of when it means nothing");
  CAPTURE(random.repeat());
  for (int i = 0; i < 200; ++i) {
    const Quota quota = Quota::per(random.between(1, 1000), Span{random.between(1, 3'600'000'000)})
                            .burst(random.between(1, 1000));
    const TokenBucket bucket(*store, "api", quota);
    const std::string one = "one" + std::to_string(i);
    const std::string two = "two" + std::to_string(i);
    const std::string third = one + "x";
    REQUIRE(bucket.try_acquire(one));
    REQUIRE(decide(*store, {bucket.acquire_step(third), bucket.acquire_step(two)}));
    const Step step = bucket.acquire_step(one);
    const Word longest = step.operation->ttl(step.args) / 1'000 + 1'001;
    for (const std::string& tag : {one, one + "x", two}) {
      const Word ttl = admin({"PTTL", render(bucket.acquire_step(tag).key)}).integer;
      CHECK(ttl > 0);
      CHECK(ttl <= longest);
    }
  }
}

TEST_CASE("a blocked key lives as long as its block", "[redis][C-032]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  const auto store = connect_socket(server);
  const SlidingWindow windows(*store, "api", {{5, std::chrono::seconds(1)}});
  const auto hour = std::chrono::hours(1);
  const auto ttl = [&](const char* key) { return admin({"PTTL", key}).integer; };
  windows.block("fresh", hour);
  static_cast<void>(windows.try_acquire("spent"));
  windows.block("spent", hour);
  windows.block("spent", std::chrono::seconds(1));
  static_cast<void>(windows.reserve("spent", 1, 2 * hour));
  windows.reward("fresh", 1);
  CHECK(ttl("{fresh}:api:1s,grants") > 3'600'000);
  CHECK(ttl("{fresh}:api:1s,grants") <= 3'600'000 + 121'001);
  CHECK(ttl("{spent}:api:1s,grants") > 3'600'000);
  admin({"PERSIST", "{spent}:api:1s,grants"});
  windows.reward("spent", 1);
  CHECK(ttl("{spent}:api:1s,grants") > 0);
  CHECK_FALSE(windows.try_acquire("spent").allowed);
}

TEST_CASE("a refusal, a question and a refused plan write nothing", "[redis][C-016]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  const auto store = connect_socket(server);
  const TokenBucket bucket(*store, "api", Quota::per_hour(1));
  static_cast<void>(bucket.peek("a"));
  CHECK(bucket.try_acquire("a", 0));
  CHECK(admin({"DBSIZE"}).integer == 0);
  CHECK(bucket.try_acquire("a"));
  const std::string before = admin({"DUMP", "{a}:api:1/h"}).text;
  const Word ttl = admin({"PEXPIRETIME", "{a}:api:1/h"}).integer;
  CHECK_FALSE(bucket.try_acquire("a"));
  CHECK_FALSE(decide(*store, {bucket.acquire_step("b"), bucket.acquire_step("a")}));
  CHECK(admin({"DUMP", "{a}:api:1/h"}).text == before);
  CHECK(admin({"PEXPIRETIME", "{a}:api:1/h"}).integer == ttl);
  CHECK(admin({"DBSIZE"}).integer == 1);
}

TEST_CASE("what others left under our key is an error, and stays as it was",
          "[redis][C-014][C-028]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  const auto store = connect_socket(server);
  const TokenBucket bucket(*store, "api", Quota::per_hour(10));
  const std::string key = "{a}:api:10/h";
  const auto check = [&](std::initializer_list<std::string_view> command, Errc code) {
    admin({"DEL", key});
    REQUIRE_FALSE(admin(command).is_error());
    const std::string before = admin({"DUMP", key}).text;
    std::error_code error;
    static_cast<void>(bucket.try_acquire("a", error));
    CHECK(error == code);
    CHECK(error == Failure::not_executed);
    static_cast<void>(bucket.peek("a", 1, error));
    CHECK(error == code);
    Asked plan;
    store->execute({bucket.acquire_step("other"), bucket.acquire_step("a")}, plan.completion());
    CHECK(plan.wait().error == code);
    CHECK(plan.decision.step == 1);
    CHECK(admin({"DUMP", key}).text == before);
    CHECK(admin({"EXISTS", "{other}:api:10/h"}).integer == 0);
  };
  check({"LPUSH", key, "x"}, Errc::wrong_type);
  check({"HSET", key, "x", "y"}, Errc::wrong_type);
  check({"SET", key, ""}, Errc::wrong_type);
  check({"SET", key, "17"}, Errc::wrong_type);
  check({"SET", key, std::string(16, '\x12')}, Errc::wrong_type);
  check({"SET", key, std::string(18, '\x12')}, Errc::wrong_type);
  check({"SET", key, std::string(24, '\x12')}, Errc::wrong_type);
  check({"SET", key, std::string(26, '\x12')}, Errc::wrong_type);
  check({"SET", key, std::string(100'000, '\x12')}, Errc::wrong_type);
  check({"SET", key, state('2', 0, 0)}, Errc::wrong_type);
  check({"SET", key, state(2, 0, 0)}, Errc::wrong_kind);
  check({"SET", key, state(31, 0, 0)}, Errc::wrong_kind);
  check({"SET", key, state(0, 0, 0)}, Errc::wrong_kind);
  check({"SET", key, state(18, -1, 0)}, Errc::corrupt_state);
  check({"SET", key, state(18, 0, -1)}, Errc::corrupt_state);
  check({"SET", key, state(18, word_limit + 1, 0)}, Errc::corrupt_state);
  check({"SET", key, state(18, 0, INT64_MAX)}, Errc::corrupt_state);
  check({"SET", key, state(18, INT64_MIN, INT64_MIN)}, Errc::corrupt_state);
  check({"SET", key, state(18, 0, -1) + std::string(8, '\0')}, Errc::corrupt_state);
}

TEST_CASE("a state that may be is used, however odd, and gets a time to live", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  const auto store = connect_socket(server);
  const TokenBucket bucket(*store, "api", Quota::per_second(10));
  for (const auto& odd : {state(18, 0, 0), state(18, 2'000'001, 0),
                          state(18, word_limit, word_limit), state(18, 0, word_limit)}) {
    // Behind the words stands when the key expires, or nothing.
    for (const char filler : {'\0', '\x7f', '\xff'}) {
      for (const std::size_t more : {0U, 8U}) {
        const std::string raw = odd + std::string(more, filler);
        admin({"SET", "{a}:api:10/s", raw});
        CHECK(bucket.try_acquire("a"));
        CHECK(admin({"PTTL", "{a}:api:10/s"}).integer > 0);
        for (const char* key : {"{b}:api:10/s", "{c}:api:10/s"}) admin({"SET", key, raw});
        CHECK(decide(*store, {bucket.acquire_step("b"), bucket.acquire_step("c")}));
        for (const char* key : {"{b}:api:10/s", "{c}:api:10/s"}) {
          CHECK(admin({"PTTL", key}).integer > 0);
        }
      }
    }
  }
}

TEST_CASE("a key that is written often gets its time to live anew twice a second",
          "[redis][C-032]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  const auto store = connect_socket(server);
  const TokenBucket bucket(*store, "api", Quota::per_second(1'000'000));
  const SlotLock lock(*store, "lock", Span{1});
  for (const Step& step : {bucket.acquire_step("a"), lock.acquire_step("a", Span{0})}) {
    const Word least = step.operation->ttl(step.args) / 1'000;
    for (const bool in_plan : {false, true}) {
      std::set<Word> expiries;
      int kept = 0;
      while (expiries.size() < 3 || kept == 0) {
        const RedisReply time = admin({"TIME"});
        const Word before = std::stoll(time.elements.at(0).text) * 1'000;
        const Decision decision =
            in_plan ? decide(*store, {step, bucket.acquire_step("b")}) : decide(*store, {step});
        if (!decision) continue;
        const Word expiry = admin({"PEXPIRETIME", render(step.key)}).integer;
        REQUIRE(expiry >= before + least);
        if (!expiries.insert(expiry).second) ++kept;
      }
      CHECK(*expiries.rbegin() - *expiries.begin() >= 500);
    }
  }
}
