// The store's own end, forks, signals, stop requests at every moment of a call, the bound on calls
// in flight, and a server that hangs. Threading: as each test says.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/check.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1'000'000);

}  // namespace

TEST_CASE_METHOD(SharedServer,
                 "the Redis store keeps every promise of a store, on a socket and on TCP",
                 "[redis]") {
  check_store(*connect_socket(server));
  check_store(*connect_tcp(server));
}

TEST_CASE("a completion may destroy its own store, and all calls have ended then", "[redis]") {
  RedisServer server;
  struct Destroyer {
    std::unique_ptr<RedisStore> store;
    Crowd others{500};
    std::size_t ended = 0;
    std::atomic<bool> over{false};
  };
  const bool by_deadline = GENERATE(false, true);
  for (int round = 0; round < 20; ++round) {
    Destroyer it{connect_socket(server)};
    const Bucket bucket(*it.store, quota);
    const Step step = (*bucket).acquire_step("a");
    server.suspend();  // so that nothing ends before all is asked
    for (std::size_t i = 0; i < it.others.size(); ++i) {
      bucket.ask(it.others[i], "b", by_deadline ? Span{50ms} : Span{20s});
    }
    it.store->execute(Plan(step).within(by_deadline ? Span{50ms} : Span{20s}),
                      Completion(
                          [](void* self, const Outcome&) noexcept {
                            auto& destroyer = *static_cast<Destroyer*>(self);
                            destroyer.store.reset();
                            destroyer.ended = destroyer.others.count(
                                [](const Asked& c) { return c.answers == 1; });
                            destroyer.over = true;
                          },
                          &it));
    if (!by_deadline) server.resume();
    REQUIRE(eventually([&] { return it.over.load(); }));
    server.resume();
    CHECK(it.ended == it.others.size());
  }
}

TEST_CASE("a store may be destroyed while it connects", "[redis]") {
  RedisServer server;
  for (int i = 0; i < 50; ++i) {
    const auto store = i % 2 == 0 ? connect_socket(server) : connect_tcp(server);
    if (i % 3 != 0) std::this_thread::yield();
  }
  server.suspend();
  for (int i = 0; i < 10; ++i) {
    Asked asked;
    {
      const auto store = i % 2 == 0 ? connect_socket(server) : connect_tcp(server);
      Bucket(*store, quota).ask(asked, "a");
    }
    CHECK(asked.answers == 1);
    CHECK(asked.error == Errc::shut_down);
  }
}

TEST_CASE_METHOD(
    SharedServer,
    "a thread that is cancelled asks, wakes and destroys its store, and ends behind that",
    "[redis]") {
  struct Owner {
    std::unique_ptr<RedisStore> store;
    bool asks = false;
    std::size_t answered = 0;
    bool went_on = false;
  };
  const auto run = [](void* self) -> void* {
    auto& mine = *static_cast<Owner*>(self);
    ::pthread_cancel(::pthread_self());
    if (mine.asks) {
      const TokenBucket bucket(*mine.store, "api", quota);
      std::array<Decision, 2> decisions;
      std::array<std::error_code, 2> errors;
      const std::array steps{bucket.acquire_step("a"), bucket.acquire_step("b")};
      const std::array<Plan, 2> plans{steps[0], steps[1]};
      for (int i = 0; i < 3; ++i) {
        mine.answered += bucket.try_acquire("a", errors[0]) ? 1U : 0U;
        decide_batch(*mine.store, plans, decisions, errors);
        mine.answered += decisions[0] && decisions[1] ? 1U : 0U;
      }
      const auto watch = mine.store->subscribe("a", [] {});
      mine.store->notify("a");
    }
    mine.store.reset();
    ::pthread_testcancel();
    mine.went_on = true;
    return nullptr;
  };
  for (int round = 0; round < 20; ++round) {
    Owner owner;
    owner.store = round % 2 == 0 ? connect_socket(server) : connect_tcp(server);
    owner.asks = round % 4 < 2;
    pthread_t thread{};
    REQUIRE(::pthread_create(&thread, nullptr, run, &owner) == 0);
    REQUIRE(::pthread_join(thread, nullptr) == 0);
    CHECK(owner.answered == (owner.asks ? 6 : 0));
    CHECK(owner.store == nullptr);
    CHECK_FALSE(owner.went_on);
  }
}

TEST_CASE_METHOD(SharedStore, "a blocking call on the store's own thread fails instead of blocking",
                 "[redis]") {
  const TokenBucket bucket(*store, "api", quota);
  std::error_code inside;
  std::error_code batch;
  std::atomic<bool> over{false};
  decide_then(*store, bucket.acquire_step("a"), [&](std::error_code, Decision) {
    static_cast<void>(bucket.try_acquire("b", inside));
    const Step step = bucket.acquire_step("c");
    const Plan plan(step);
    Decision decision;
    decide_batch(*store, {&plan, 1}, {&decision, 1}, {&batch, 1});
    over = true;
  });
  REQUIRE(eventually([&] { return over.load(); }));
  CHECK(inside == Errc::would_deadlock);
  CHECK(batch == Errc::would_deadlock);
  CHECK(bucket.peek("b").remaining == 1'000'000);
}

TEST_CASE("a forked child is told so, hears nothing, and does not disturb its parent",
          "[redis][watch]") {
  const RedisServer server;
  auto store = connect_tcp(server);
  const TokenBucket bucket(*store, "api", quota);
  const Key key("a", "jobs");
  std::atomic<int> heard{0};
  auto watch = store->subscribe(key, [&] { ++heard; });
  REQUIRE(eventually([&] { return store->stats().subscriptions == 1; }));
  CHECK(bucket.try_acquire("a"));
  const pid_t child = ::fork();
  if (child == 0) {
    std::error_code error;
    static_cast<void>(bucket.try_acquire("a", error));
    const bool is_told = error == Errc::forked && store->subscribe(key, [] {}) == nullptr;
    store->notify(key);
    watch.reset();
    store.reset();
    ::_exit(is_told ? 0 : 1);
  }
  for (int i = 0; i < 100; ++i) CHECK(bucket.try_acquire("a"));
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  for (int i = 0; i < 100; ++i) CHECK(bucket.try_acquire("a"));
  CHECK(bucket.peek("a").remaining == 1'000'000 - 201);
  CHECK(store->stats().connections == 1);
  CHECK(heard == 0);
  store->notify(key);
  CHECK(eventually([&] { return heard == 1; }));
}

TEST_CASE("children that are forked while all threads ask are told so", "[redis]") {
  const RedisServer server;
  const auto store = connect_socket(server);
  const TokenBucket bucket(*store, "api", quota);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::error_code error;
      while (!over) static_cast<void>(bucket.try_acquire("a", error));
    });
  }
  int told = 0;
  const int children = 300;
  for (int i = 0; i < children; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // ends a child that waits for ever
      std::error_code error;
      static_cast<void>(bucket.try_acquire("a", error));
      ::_exit(error == Errc::forked ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    if (status != 0) break;
    ++told;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(told == children);
}

TEST_CASE("a connection ends with its store, also while a forked child lives", "[redis]") {
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  auto store = connect_tcp(server);
  CHECK_FALSE(Bucket(*store, quota).error("a"));
  std::array<int, 2> hold{};
  REQUIRE(::pipe(hold.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(hold[1]);
    char byte = 0;
    [[maybe_unused]] const auto size = ::read(hold[0], &byte, 1);  // until the parent lets go
    ::_exit(0);
  }
  CHECK(connections_named(admin, "sluice") == 1);
  store.reset();
  CHECK(eventually([&] { return connections_named(admin, "sluice") == 0; }));
  ::close(hold[1]);
  ::waitpid(child, nullptr, 0);
  ::close(hold[0]);
}

TEST_CASE("a server that dies does not kill the process with SIGPIPE", "[redis]") {
  struct sigaction action {};
  ::sigaction(SIGPIPE, nullptr, &action);
  REQUIRE(action.sa_handler == SIG_DFL);
  RedisServer server;
  for (const RedisOptions& options : {socket_options(server), tcp_options(server)}) {
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    CHECK_FALSE(bucket.error("a"));
    server.suspend();
    Crowd crowd(5'000);
    for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 1s);
    server.restart();
    CHECK(crowd.wait());
  }
  ::sigaction(SIGPIPE, nullptr, &action);
  CHECK(action.sa_handler == SIG_DFL);
}

TEST_CASE_METHOD(SharedStore, "the store's thread takes no signals of the program", "[redis]") {
  sigset_t mask;
  std::atomic<bool> over{false};
  decide_then(*store, TokenBucket(*store, "api", quota).acquire_step("a"),
              [&](std::error_code, Decision) {
                pthread_sigmask(SIG_SETMASK, nullptr, &mask);
                over = true;
              });
  REQUIRE(eventually([&] { return over.load(); }));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGALRM, SIGUSR1}) {
    CHECK(sigismember(&mask, signal) == 1);
  }
}

TEST_CASE_METHOD(SharedStore, "stop requests that race with answers end each call once, and truly",
                 "[redis]") {
  const TokenBucket bucket(*store, "api", quota);
  Random random("stop requests that race with answers end each call once, and truly");
  CAPTURE(random.repeat());
  std::size_t cancelled = 0;
  std::size_t charged = 0;
  std::size_t unknown = 0;
  for (std::size_t round = scaled(300, 50); round > 0; --round) {
    Crowd crowd(50);
    std::vector<std::stop_source> stops(crowd.size());
    std::thread stopper([&, pause = random.below(200)] {
      std::this_thread::sleep_for(std::chrono::microseconds(pause));
      for (auto& stop : stops) stop.request_stop();
    });
    for (std::size_t i = 0; i < crowd.size(); ++i) {
      const Step step = bucket.acquire_step("a");
      store->execute(Plan(step).within(20s).cancelled_by(stops[i].get_token()),
                     crowd[i].completion());
    }
    stopper.join();
    REQUIRE(crowd.wait());
    for (const Asked& call : crowd) {
      cancelled += call.error == Errc::cancelled ? 1U : 0U;
      unknown += call.error == Errc::unknown ? 1U : 0U;
      charged += !call.error ? 1U : 0U;
    }
  }
  const auto spent = static_cast<std::size_t>(1'000'000 - bucket.peek("a").remaining);
  CHECK(spent >= charged);
  CHECK(spent <= charged + unknown);
  CHECK(cancelled + unknown > 0);
}

TEST_CASE_METHOD(SharedServer, "a completion makes room for the next call", "[redis]") {
  RedisOptions options = socket_options(server);
  options.max_in_flight = 1;
  const auto store = make_redis_store(options);
  const TokenBucket bucket(*store, "api", quota);
  std::atomic<int> left{100};
  std::atomic<int> errors{0};
  const std::function<void()> ask = [&] {
    decide_then(*store, bucket.acquire_step("chain"), [&](std::error_code error, const Decision&) {
      errors += error ? 1 : 0;
      if (--left > 0) ask();
    });
  };
  ask();
  CHECK(eventually([&] { return left == 0; }));
  CHECK(errors == 0);
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
