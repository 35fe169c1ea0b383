// Servers that die, hang and pause in mid-load, alone and behind a breaker, and callers that give
// up. Threading: the test's thread asks and disturbs; some tests have callers of their own.
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/fallback_store.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/sluice.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

/// Waits again and again, each time until it is granted, or is stopped by its stopper.
struct Impatient {
  Impatient(const TokenBucket& limit, std::atomic<int>& count, std::atomic<bool>& over)
      : thread([this, &limit, &count, &over] {
          for (;;) {
            StopToken token = renew();
            if (over) return;  // else it is stopped when that is set
            std::error_code error;
            if (limit.acquire("a", 1, 1min, {.stop = token}, error) && !error) ++count;
            if (error && error != Errc::cancelled) failed = true;
          }
        }) {}
  StopToken renew() {
    const std::lock_guard lock(mutex);
    source = StopSource();
    return source.get_token();
  }
  void give_up() {
    const std::lock_guard lock(mutex);
    source.request_stop();
  }

  std::mutex mutex;
  StopSource source;
  std::atomic<bool> failed{false};
  std::thread thread;
};

/// Calls that the Redis store has been handed while `ask` ran.
std::uint64_t reached(const RedisStore& redis, const auto& ask) {
  const auto before = redis.stats().calls;
  ask();
  return redis.stats().calls - before;
}

}  // namespace

TEST_CASE("kill -9 in mid-load ends every call once, and admits no more than the bound",
          "[redis]") {
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

TEST_CASE_METHOD(SharedServer,
                 "after a pause that timed calls out, each reply still belongs to its call",
                 "[redis]") {
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

TEST_CASE("waits are back at their deadlines when the server hangs, and late grants are refunded",
          "[redis][overdue]") {
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

TEST_CASE_METHOD(
    SharedStore,
    "callers of a server who give up leave their units to the others, and to the next process",
    "[redis][waiting][giving_up]") {
  const TokenBucket bucket(*store, "api", Quota::per_second(50).burst(1));
  const SystemClock clock;
  std::atomic<int> granted{0};
  std::atomic<bool> over{false};
  std::deque<Impatient> callers;
  const Time start = clock.now();
  for (int i = 0; i < 20; ++i) callers.emplace_back(bucket, granted, over);
  // Each waits for 400 ms on average until its turn, and gives up every 200 ms.
  for (std::size_t next = 0; clock.now() - start < 2s; ++next) {
    std::this_thread::sleep_for(10ms);
    callers[next % callers.size()].give_up();
  }
  over = true;
  for (Impatient& caller : callers) caller.give_up();
  for (Impatient& caller : callers) caller.thread.join();
  const double could = 50 * std::chrono::duration<double>(clock.now() - start).count();
  for (const Impatient& caller : callers) CHECK_FALSE(caller.failed);
  CAPTURE(could);
  CHECK(granted <= could + 2);
  CHECK(granted >= could / 2);  // 0.97 of it on a quiet machine
  const auto other = connect_socket(server);
  const TokenBucket next(*other, "api", Quota::per_second(50).burst(1));
  CHECK(next.peek("a").retry_after <= 40ms);
}

TEST_CASE("calls to a server that hangs or died are answered without it after the trip",
          "[redis][fallback][C-036]") {
  const bool hangs = GENERATE(true, false);
  RedisServer server;
  RedisOptions options = socket_options(server);
  options.reconnect_max = 10ms;
  options.stall_timeout = 200ms;
  const auto redis = make_redis_store(options);
  const auto local = make_memory_store();
  VirtualClock time;
  SeededRng rng{5};
  CircuitBreaker breaker(time,
                         {.failures = 3, .first_pause = 1s, .longest_pause = 1s, .rng = &rng});
  const Span patience = 400ms;  // what a loaded machine needs to answer at all
  FallbackStore open(*redis, breaker, FailurePolicy::open(), patience);
  FallbackStore closed(*redis, breaker, FailurePolicy::closed(), patience);
  FallbackStore alone(*redis, breaker, FailurePolicy::local(*local, 2), patience);
  const auto bucket = [](Store& store) {
    return TokenBucket(store, "api", Quota::per_hour(1).burst(100));
  };
  REQUIRE(bucket(open).try_acquire("a", 40).source == Source::redis);

  hangs ? server.suspend() : server.kill();
  const auto tripping = reached(*redis, [&] {
    while (breaker.state() == CircuitBreaker::State::closed) {
      CHECK(bucket(open).try_acquire("a").source == Source::policy);
    }
  });
  CHECK(tripping == 3);
  const auto after = reached(*redis, [&] {
    for (int i = 0; i < 1000; ++i) CHECK(bucket(open).try_acquire("a"));
    for (int i = 0; i < 1000; ++i) CHECK_FALSE(bucket(closed).try_acquire("a"));
    int admitted = 0;
    for (int i = 0; i < 1000; ++i) admitted += bucket(alone).try_acquire("a") ? 1 : 0;
    CHECK(admitted == 50);
  });
  CHECK(after == 0);

  time.advance(1s);
  const auto probing = reached(*redis, [&] {
    for (int i = 0; i < 100; ++i) (void)bucket(open).try_acquire("a");
  });
  CHECK(probing == 1);

  hangs ? server.resume() : server.start();
  Decision decision;
  CHECK(eventually([&] {
    time.advance(1s);
    decision = bucket(open).try_acquire("a");
    return decision.source == Source::redis;
  }));
  CHECK(breaker.state() == CircuitBreaker::State::closed);
  // What was admitted meanwhile was not charged, but for the calls that reached a hanging server.
  if (hangs) CHECK(decision.remaining >= 59 - static_cast<Word>(redis->stats().unknown));
}

TEST_CASE("leases end on an event loop while the server hangs, and their releases arrive",
          "[redis][leases][ends]") {
  RedisServer server;
  const auto store = connect_socket(server);
  // A destructor that waited would take these hours, or be ended by the call's own 20 s.
  const ConcurrencyLimiter jobs(*store, "jobs", 4, {.ttl = 10h, .release_within = 1h});
  const SystemClock clock;
  Span taken = Span::max();
  const auto work = [&]() -> boost::asio::awaitable<void> {
    Time stopped{};
    {
      const Lease one = co_await asio::async_try_acquire(jobs, "a", 1, boost::asio::use_awaitable);
      const Lease two = co_await asio::async_acquire(jobs, "a", 1, 10s, boost::asio::use_awaitable);
      const std::array claims{Claim(jobs, "a")};
      const Grants three = co_await asio::async_acquire(claims, 10s, boost::asio::use_awaitable);
      const auto suspend = [&]() -> boost::asio::awaitable<void> {
        server.suspend();
        stopped = clock.now();
        co_return;
      };
      co_await asio::guarded(jobs, "a", 1, 10s, suspend);
    }
    taken = clock.now() - stopped;
  };
  boost::asio::io_context io;
  boost::asio::co_spawn(io, work(), boost::asio::detached);
  io.run();  // all four have ended while the server stands still
  server.resume();
  CHECK(taken < 10s);
  CHECK(eventually([&] { return jobs.peek("a").remaining == 4; }));
}
