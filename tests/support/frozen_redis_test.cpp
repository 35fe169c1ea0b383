// The server whose clock is the test's. Threading: single-threaded.
#include "tests/support/frozen_redis.hpp"

#include "tests/catch.hpp"
#include "tests/support/redis_client.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a frozen server tells the test's time, forwards and backwards", "[support][redis]") {
  if (redis_left_out()) return;
  FrozenRedis& redis = FrozenRedis::instance();
  RedisClient client(redis.server().unix_socket());
  for (const Word now : {Word{1'000'000'000'000'000}, Word{1'000'000'000'000'001}, Word{999'999},
                         Word{0}, word_limit}) {
    redis.set_time(to_time(now));
    CHECK(client.time_us() == now);
    CHECK(client.time_us() == now);
    CHECK(client({"EVAL", "return redis.call('TIME')[1]", "0"}).text ==
          std::to_string(now / 1'000'000));
  }
}

TEST_CASE("keys of a frozen server expire by the test's time", "[support][redis]") {
  if (redis_left_out()) return;
  FrozenRedis& redis = FrozenRedis::instance();
  RedisClient client(redis.server().unix_socket());
  const Time start = to_time(1'000'000'000'000'000);
  redis.set_time(start);
  redis.flush();
  client({"SET", "key", "value", "PX", "60000"});
  redis.set_time(start + std::chrono::minutes{1});
  CHECK(client({"PTTL", "key"}).integer == 0);
  redis.set_time(start - std::chrono::hours{24});
  CHECK(client({"PTTL", "key"}).integer == 86'460'000);
  redis.set_time(start + std::chrono::minutes{1} + std::chrono::milliseconds{1});
  CHECK(client({"GET", "key"}).is_nil());
}

TEST_CASE("a server with a shifted clock is wrong by the shift, and its clock runs",
          "[support][redis]") {
  if (redis_left_out()) return;
  const RedisServer right;
  const RedisServer wrong({}, shifted_clock(std::chrono::seconds{-15}));
  RedisClient here(right.unix_socket());
  RedisClient there(wrong.unix_socket());
  for (int i = 0; i < 10; ++i) {
    const std::int64_t before = here.time_us();
    const std::int64_t shifted = there.time_us() + 15'000'000;
    CHECK(before <= shifted);
    CHECK(shifted <= here.time_us());
  }
}
