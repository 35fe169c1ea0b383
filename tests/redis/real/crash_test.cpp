// Servers that die, hang and pause in mid-load. Threading: the test's thread asks and disturbs;
// some tests have callers of their own.
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("kill -9 in mid-load ends every call once, and admits no more than the bound",
          "[redis]") {
  if (redis_left_out()) return;
  RedisServer server;
  RedisOptions options = GENERATE(true, false) ? socket_options(server) : tcp_options(server);
  options.reconnect_max = 20ms;
  const auto store = make_redis_store(options);
  constexpr Word capacity = 200;
  constexpr Word rate = 1'000;
  const Bucket bucket(*store, Quota::per_second(rate).burst(capacity));
  constexpr std::size_t kills = 4;
  const SystemClock clock;
  const Time start = clock.now();

  std::atomic<bool> over{false};
  std::atomic<Word> admitted{0};
  std::atomic<std::size_t> decided{0}, unknown{0}, not_executed{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (!over) {
        Crowd crowd(32);
        for (std::size_t c = 0; c < crowd.size(); ++c) bucket.ask(crowd[c], "all", 200ms);
        if (!crowd.wait()) ++wrong;
        for (const Asked& call : crowd) {
          if (!call.error) {
            ++decided;
            admitted += call.decision.allowed ? 1 : 0;
          } else if (call.error == Failure::unknown) {
            ++unknown;
          } else if (call.error == Failure::not_executed) {
            ++not_executed;
          } else {
            ++wrong;
          }
        }
      }
    });
  }
  bool came_back = true;
  for (std::size_t kill = 0; kill < kills; ++kill) {
    const std::size_t before = decided;
    came_back = came_back && eventually([&] { return decided > before + 2'000; });
    server.restart();
  }
  const std::size_t before = decided;
  came_back = came_back && eventually([&] { return decided > before + 2'000; });
  over = true;
  for (auto& caller : callers) caller.join();
  const Word elapsed_us = (clock.now() - start).count();
  CHECK(came_back);
  CHECK(wrong == 0);
  CHECK(unknown > 0);
  CHECK(store->stats().connections == kills + 1);
  CHECK(admitted <= capacity + rate * elapsed_us / 1'000'000 + 1 + Word{kills} * capacity);
  CHECK(admitted > capacity);
  CAPTURE(decided, not_executed, unknown);
}

TEST_CASE("after a pause that timed calls out, each reply still belongs to its call", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  const auto store = connect_tcp(server);
  const TokenBucket bucket(*store, "api", Quota::per(1, 30min).burst(1'000'000));
  // Key i is charged i + 1 first: what remains tells whose reply it is.
  constexpr std::size_t keys = 50;
  for (std::size_t i = 0; i < keys; ++i)
    static_cast<void>(bucket.try_acquire(std::to_string(i), i + 1));
  for (int round = 0; round < 5; ++round) {
    admin({"CLIENT", "PAUSE", "20000", "WRITE"});  // ALL would stop UNPAUSE as well
    Crowd late(keys);
    Crowd patient(keys);
    for (std::size_t i = 0; i < keys; ++i) {
      const std::string tag = std::to_string(i);
      const Step step = bucket.peek_step(tag);
      store->execute(Plan(step).within(10ms), late[i].completion());
      store->execute(Plan(step).within(20s), patient[i].completion());
    }
    CHECK(late.wait());
    CHECK(late.count([](const Asked& c) { return c.error == Failure::unknown; }) == keys);
    admin({"CLIENT", "UNPAUSE"});
    CHECK(patient.wait());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < keys; ++i) {
      const Word expected = 1'000'000 - static_cast<Word>(i) - 1;
      wrong += !patient[i].error && patient[i].decision.remaining == expected ? 0U : 1U;
      wrong += bucket.peek(std::to_string(i)).remaining == expected ? 0U : 1U;
    }
    CHECK(wrong == 0);
  }
  CHECK(store->stats().late_replies == 5 * keys);
  CHECK(store->stats().connections == 1);
}

TEST_CASE("a deadline counts from the call, also behind a server that hangs", "[redis][C-036]") {
  if (redis_left_out()) return;
  RedisServer server;
  const auto store = GENERATE(true, false) ? connect_socket(server) : connect_tcp(server);
  const Bucket bucket(*store, Quota::per(1, 30min).burst(1'000'000));
  CHECK_FALSE(bucket.error("a"));
  const SystemClock clock;
  server.suspend();
  std::array<Span, 4> timeouts{1ms, 20ms, 50ms, 100ms};
  std::array<Asked, 4> calls;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Time asked = clock.now();
    bucket.ask(calls[i], "a", timeouts[i]);
    CHECK(calls[i].wait().error == Failure::unknown);
    CHECK(clock.now() - asked >= timeouts[i]);
  }
  Asked patient;
  bucket.ask(patient, "a", 20s);
  server.resume();
  CHECK_FALSE(patient.wait().error);
  // What timed out was executed all the same: that is what unknown means.
  CHECK((*bucket).peek("a").remaining == 1'000'000 - 6);
}

TEST_CASE("a server that hangs longer than the stall timeout is left, and found again",
          "[redis][C-036]") {
  if (redis_left_out()) return;
  RedisServer server;
  RedisOptions options = tcp_options(server);
  options.stall_timeout = 30ms;
  options.connect_timeout = 30ms;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, Quota::per(1, 30min).burst(1'000'000));
  CHECK_FALSE(bucket.error("a"));
  server.suspend();
  CHECK(bucket.error("a") == Errc::unknown);
  CHECK(bucket.error("a", 100ms) == Errc::not_connected);
  server.resume();
  CHECK_FALSE(bucket.error("a"));
  CHECK(store->stats().connections == 2);
}

TEST_CASE("a store made before its server works once it is there", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server;
  server.kill();
  const auto store = connect_socket(server);
  const Bucket bucket(*store, Quota::per_hour(10));
  CHECK(bucket.error("a", 20ms) == Errc::not_connected);
  Asked early;
  bucket.ask(early, "a", 20s);
  server.start();
  CHECK_FALSE(early.wait().error);
}
