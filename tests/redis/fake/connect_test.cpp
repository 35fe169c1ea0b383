// Connecting to servers that misbehave before the first call. Threading: as calls_test.cpp.
#include <array>

#include "sluice/limiters/concurrency_limiter.hpp"
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/server.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10);

/// Of a call that gets `within`: as long as it takes if the server has an answer to it.
std::error_code error_with(const FakeServer::Behaviour& behaviour, Span within) {
  FakeServer server(behaviour);
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 500ms;
  const auto store = make_redis_store(options);
  return Bucket(*store, quota).error("a", within);
}

}  // namespace

TEST_CASE("without a login that makes sense nothing is sent, and the call says so", "[fake]") {
  for (const std::string reply : {"", "garbage", "*1\r\n", ":1\r\n", "$2147483647\r\n",
                                  "+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "+OK\r\n*"}) {
    for (const bool closes : {false, true}) {
      CAPTURE(reply, closes);
      std::atomic<bool> was_called{false};
      const auto error = error_with(
          [&](Peer& peer, int) {
            const auto command = peer.read();
            was_called = was_called || (command && is_call(*command));
            if (peer.send(reply) && !closes) peer.wait_for_close();
          },
          100ms);
      CHECK(error == Errc::not_connected);
      CHECK_FALSE(was_called);
    }
  }
}

TEST_CASE("a connection that is accepted and left alone is tried again", "[fake]") {
  FakeServer server([](Peer& peer, int number) {
    if (number > 1) return serve_well(peer);
    peer.wait_for_close();
  });
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 300ms;
  const auto store = make_redis_store(options);
  CHECK_FALSE(Bucket(*store, quota).error("a", 20s));
  CHECK(server.connections() == 3);
}

TEST_CASE("a server that turns the client away is quoted", "[fake]") {
  const auto turn_away = [](std::string_view words) {
    return [=](Peer& peer, int) { peer.send(words); };
  };
  CHECK(error_with(turn_away("-ERR max number of clients reached\r\n"), 500ms) ==
        Errc::too_many_clients);
  CHECK(error_with(
            [](Peer& peer, int) {
              while (const auto command = peer.read())
                peer.send("-NOAUTH Authentication required.\r\n");
            },
            500ms) == Errc::no_auth);
}

TEST_CASE("a server that is loading is connected to, and answers for itself", "[fake]") {
  CHECK(error_with(
            [](Peer& peer, int) {
              while (const auto command = peer.read()) peer.send("-LOADING wait\r\n");
            },
            1s) == Errc::loading);
}

TEST_CASE("reconnecting to a server that closes at once is bounded by the back-off",
          "[fake][C-036]") {
  const bool logs_in = GENERATE(false, true);
  FakeServer server([=](Peer& peer, int) {
    for (int i = 0; logs_in && i < 2; ++i) {
      if (!peer.read() || !peer.send("+OK\r\n")) return;
    }
  });
  RedisOptions options;
  options.port = server.port();
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  const SystemClock clock;
  for (const Time end = clock.now() + 1s; clock.now() < end;) {
    // Logged in, the call may be sent just before the server closes.
    const auto error = bucket.error("a", 200ms);
    CHECK((error == Failure::not_executed || (logs_in && error == Errc::unknown)));
  }
  // The pauses are drawn from [0, 10 ms * 2^n), at most 250 ms: 7 of them are at most 1.06 s in
  // all, and a run of 40 pauses within 1 s is less likely than 2^-60.
  CHECK(server.connections() >= 3);
  CHECK(server.connections() <= 40);
}

TEST_CASE("a name that cannot be resolved ends the call by its deadline", "[fake]") {
  RedisOptions options;
  options.host = "no-such-host.invalid";
  const auto store = make_redis_store(options);
  CHECK(Bucket(*store, quota).error("a", 50ms) == Errc::not_connected);
}

TEST_CASE("the name localhost is resolved, and every address it has is tried", "[fake]") {
  FakeServer server([](Peer& peer, int) { serve_well(peer); });
  RedisOptions options;
  options.host = "localhost";
  options.port = server.port();
  const auto store = make_redis_store(options);
  CHECK_FALSE(Bucket(*store, quota).error("a"));
}

TEST_CASE("nobody listening means not connected, by the deadline", "[fake]") {
  RedisOptions options;
  {
    const FakeServer gone([](Peer&, int) {});
    options.port = gone.port();
  }
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK(bucket.error("a", 50ms) == Errc::not_connected);
  options.unix_socket = "/nonexistent/socket";
  const auto other = make_redis_store(options);
  CHECK(Bucket(*other, quota).error("a", 50ms) == Errc::not_connected);
}

TEST_CASE("limits of 0 and unlimited ones ask no server", "[fake][constant]") {
  RedisOptions options;
  options.unix_socket = "/nonexistent/socket";
  const auto store = make_redis_store(options);
  const TokenBucket none(*store, "none", Quota::never());
  const TokenBucket all(*store, "all", Quota::unlimited());
  CHECK(none.try_acquire("k").retry_after == Decision::never);
  CHECK(none.acquire("k", 1, Deadline::never()).retry_after == Decision::never);
  CHECK(all.try_acquire("k", 5).allowed);
  CHECK(all.acquire("k", 5, 1s).granted == 5);
  const Lease lease = ConcurrencyLimiter(*store, "jobs", unlimited).try_acquire("k");
  CHECK(lease);
  const std::array both{all.acquire_step("k"), none.acquire_step("k")};
  CHECK(decide(*store, both).step == 1);
  std::array<Decision, 2> results;
  std::array<std::error_code, 2> errors;
  const std::array plans{Plan(both[0]), Plan(both[1])};
  decide_batch(*store, plans, results, errors);
  CHECK((results[0].allowed && !results[1].allowed && !errors[0] && !errors[1]));
  // With another step, the server is asked.
  const TokenBucket some(*store, "some", quota);
  const std::array mixed{all.acquire_step("k"), some.acquire_step("k")};
  std::error_code error;
  (void)decide(*store, Plan(mixed).within(50ms), error);
  CHECK(error == Errc::not_connected);
}
