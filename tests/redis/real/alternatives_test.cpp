// Alternatives on a real server: one of them is charged, in one round trip, whoever else asks and
// whatever the server has lost.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/left_out.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

FirstOf accounts(const TokenBucket& keys, std::initializer_list<const char*> names) {
  std::vector<std::vector<Claim>> alternatives;
  for (const char* name : names) alternatives.push_back({{keys, name}});
  return first_of(std::move(alternatives));
}

}  // namespace

TEST_CASE("alternatives of several tags are decided in one round trip, and one is charged",
          "[redis][first_of]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  const auto store = connect_socket(server);
  const TokenBucket keys(*store, "keys", Quota::per(1, 1h).burst(2));
  const auto either = accounts(keys, {"a", "b", "c"});
  std::vector<std::size_t> taken;
  for (int i = 0; i < 6; ++i) {
    if (i == 3) CHECK(admin({"SCRIPT", "FLUSH"}).text == "OK");
    const Grants granted = acquire(either, 0s);
    REQUIRE(granted);
    taken.push_back(granted.alternative());
  }
  CHECK(taken == std::vector<std::size_t>{0, 0, 1, 1, 2, 2});
  const Grants refused = acquire(either, 0s);
  CHECK_FALSE(refused);
  CHECK(refused.decision().retry_after > 59min);
  CHECK(store->stats().decided == 7 * 3);
}

TEST_CASE("alternatives that differ in their costs alone are told apart", "[redis][first_of]") {
  if (redis_left_out()) return;
  const RedisServer server;
  const auto store = connect_socket(server);
  const TokenBucket keys(*store, "keys", Quota::per(1, 1h).burst(5));
  const auto either = first_of({{{keys, "a", 2}}, {{keys, "a", 1}}});
  CHECK(acquire(either, 0s).alternative() == 0);
  CHECK(acquire(either, 0s).alternative() == 0);
  CHECK(acquire(either, 0s).alternative() == 1);
  CHECK_FALSE(acquire(either, 0s).decision().allowed);
  CHECK(keys.peek("a").remaining == 0);
}

TEST_CASE("each alternative is tried, also if they have a limit in common", "[redis][first_of]") {
  if (redis_left_out()) return;
  const RedisServer server;
  const auto store = connect_socket(server);
  const TokenBucket all(*store, "all", Quota::per(1, 1h).burst(5));
  const TokenBucket key_a(*store, "a", Quota::per(1, 1h).burst(1));
  const TokenBucket key_b(*store, "b", Quota::per(1, 1h).burst(1));
  const auto either = first_of({{{all, "x"}, {key_a, "x"}}, {{all, "x"}, {key_b, "x"}}});
  for (const std::size_t expected : {0U, 1U}) {
    const Grants granted = acquire(either, 0s);
    REQUIRE(granted);
    CHECK(granted.alternative() == expected);
  }
  CHECK_FALSE(acquire(either, 0s).decision().allowed);
  CHECK(all.peek("x").remaining == 3);
}

TEST_CASE("threads that share alternatives are granted what there is, and no more",
          "[redis][first_of]") {
  if (redis_left_out()) return;
  const RedisServer server;
  const auto store = connect_tcp(server);
  const TokenBucket keys(*store, "keys", Quota::per(1, 24h).burst(100));
  const auto either = accounts(keys, {"a", "b", "c"});
  std::atomic<int> grants{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (acquire(either, 0s).decision().allowed) ++grants;
    });
  }
  threads.clear();
  CHECK(grants == 300);
  for (const char* name : {"a", "b", "c"}) CHECK(keys.peek(name).remaining == 0);
}
