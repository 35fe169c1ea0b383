// Waits at a server that hangs: they end at their deadlines, and what it grants later comes back.
// Threading: the test's thread.
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("waits are back at their deadlines when the server hangs, and late grants are refunded",
          "[redis][overdue]") {
  if (redis_left_out()) return;
  RedisServer server;
  const auto store = connect_socket(server);  // a call has 20 s
  const TokenBucket bucket(*store, "api", Quota::per_hour(10).burst(10));
  const ConcurrencyLimiter jobs(*store, "jobs", 2, {.ttl = 10min});
  REQUIRE(bucket.peek("a").remaining == 10);
  REQUIRE(jobs.peek("a").remaining == 2);
  const std::array claims{Claim(bucket, "a", 3), Claim(jobs, "a")};
  const SystemClock clock;
  server.suspend();
  const Time start = clock.now();
  std::error_code error;
  CHECK_FALSE(bucket.acquire("a", 1, 200ms, {}, error));
  CHECK(error == Errc::unknown);
  CHECK_FALSE(jobs.acquire("a", 1, 200ms, {}, error).decision());
  CHECK(error == Errc::unknown);
  CHECK_FALSE(acquire(claims, 200ms, {}, error).decision());
  CHECK(error == Errc::unknown);
  const Span taken = clock.now() - start;
  server.resume();
  CHECK(taken >= 600ms);
  CHECK(taken < 15s);
  CHECK(eventually([&] { return bucket.peek("a").remaining == 10; }));
  CHECK(eventually([&] { return jobs.peek("a").remaining == 2; }));
}
