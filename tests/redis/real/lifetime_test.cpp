// The store's own end, forks, signals, threads, stop requests at every moment of a call, and the
// bound on calls in flight. Threading: as each test says.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <thread>
#include <vector>

#include "sluice/extend/subscription.hpp"
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

TEST_CASE("10,000 calls in flight end before the store is gone, each once", "[redis]") {
  RedisServer server;
  const bool hangs = GENERATE(false, true);
  if (hangs) server.suspend();
  RedisOptions options = socket_options(server);
  options.max_in_flight = 20'000;
  auto store = make_redis_store(options);
  Crowd crowd(10'000);
  {
    const Bucket bucket(*store, quota);
    for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a");
  }
  store.reset();
  CHECK(crowd.count([](const Asked& c) { return c.answers == 1; }) == crowd.size());
  CHECK(crowd.count([](const Asked& c) {
    return !c.error || c.error == Errc::shut_down || c.error == Errc::unknown;
  }) == crowd.size());
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

TEST_CASE("a forked child is told so, and does not disturb its parent", "[redis]") {
  const RedisServer server;
  auto store = connect_tcp(server);
  const TokenBucket bucket(*store, "api", quota);
  CHECK(bucket.try_acquire("a"));
  const pid_t child = ::fork();
  if (child == 0) {
    std::error_code error;
    static_cast<void>(bucket.try_acquire("a", error));
    const bool told = error == Errc::forked;
    store.reset();
    ::_exit(told ? 0 : 1);
  }
  for (int i = 0; i < 100; ++i) CHECK(bucket.try_acquire("a"));
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  for (int i = 0; i < 100; ++i) CHECK(bucket.try_acquire("a"));
  CHECK(bucket.peek("a").remaining == 1'000'000 - 201);
  CHECK(store->stats().connections == 1);
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

TEST_CASE_METHOD(SharedStore, "16 threads share one connection, and each gets its own answers",
                 "[redis]") {
  const TokenBucket bucket(*store, "api", quota);
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  const auto calls = static_cast<Word>(scaled(500, 50));
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, tag = std::to_string(t)] {
      for (Word i = 1; i <= calls; ++i) {
        std::error_code error;
        const Decision decision = bucket.try_acquire(tag, error);
        if (error || decision.remaining != 1'000'000 - i) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(store->stats().connections == 1);
  CHECK(store->stats().calls == static_cast<std::uint64_t>(16 * calls));
}

TEST_CASE("a call that is cancelled before it is sent is not executed", "[redis]") {
  RedisServer server;
  server.kill();
  const auto store = connect_socket(server);
  const Bucket bucket(*store, quota);
  std::stop_source before, after;
  before.request_stop();
  Asked first, second, third;
  bucket.ask(first, "a", 20s, before.get_token());
  CHECK(first.answers == 1);
  CHECK(first.error == Errc::cancelled);
  bucket.ask(second, "a", 20s, after.get_token());
  bucket.ask(third, "b", 20s);
  std::thread([&] { after.request_stop(); }).join();
  CHECK(second.wait().error == Errc::cancelled);
  CHECK(third.answers == 0);
  server.start();
  CHECK_FALSE(third.wait().error);
  CHECK((*bucket).peek("a").remaining == 1'000'000);
}

TEST_CASE("10,000 calls end with one stop request, each once", "[redis]") {
  RedisServer server;
  RedisOptions options = socket_options(server);
  options.max_in_flight = 20'000;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("warm"));
  server.suspend();
  std::stop_source stop;
  Crowd crowd(10'000);
  Crowd others(100);
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 20s, stop.get_token());
  for (std::size_t i = 0; i < others.size(); ++i) bucket.ask(others[i], "b", 20s);
  stop.request_stop();
  CHECK(crowd.wait());
  CHECK(crowd.count([](const Asked& c) {
    return c.error == Errc::cancelled || c.error == Errc::unknown;
  }) == crowd.size());
  server.resume();
  CHECK(others.wait());
  CHECK(others.count([](const Asked& c) { return !c.error; }) == others.size());
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

TEST_CASE("a completion can cancel other calls, and its own in vain", "[redis]") {
  RedisServer server;
  const auto store = connect_socket(server);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("warm"));
  struct Canceller {
    std::stop_source stop;
    Asked asked;
  } canceller;
  server.suspend();
  Crowd others(20);
  const TokenBucket& plain = *bucket;
  const Step step = plain.acquire_step("a");
  store->execute(Plan(step).within(20ms).cancelled_by(canceller.stop.get_token()),
                 Completion(
                     [](void* self, const Outcome& outcome) noexcept {
                       auto& it = *static_cast<Canceller*>(self);
                       it.stop.request_stop();
                       it.asked.completion()(outcome);
                     },
                     &canceller));
  for (std::size_t i = 0; i < others.size(); ++i) {
    bucket.ask(others[i], "b", 20s, canceller.stop.get_token());
  }
  CHECK(canceller.asked.wait().error == Failure::unknown);
  CHECK(others.wait());
  CHECK(others.count([](const Asked& c) { return c.error == Errc::unknown; }) == others.size());
  server.resume();
  CHECK_FALSE(bucket.error("c"));
}

TEST_CASE("one call too many is refused at once, and a completion makes room", "[redis]") {
  RedisServer server;
  RedisOptions options = socket_options(server);
  options.max_in_flight = 3;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  server.suspend();
  Crowd crowd(3);
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a");
  Asked extra;
  bucket.ask(extra, "a");
  CHECK(extra.answers == 1);
  CHECK(extra.error == Errc::queue_full);
  CHECK(extra.error == Failure::not_executed);
  server.resume();
  CHECK(crowd.wait());
  CHECK_FALSE(bucket.error("a"));

  struct Chain {
    const Bucket* bucket;
    std::atomic<int> left;
    std::atomic<int> errors{0};
    std::atomic<bool> over{false};
    void next() {
      const TokenBucket& plain = **bucket;
      plain.store().execute(plain.acquire_step("chain"),
                            Completion(
                                [](void* self, const Outcome& outcome) noexcept {
                                  auto& it = *static_cast<Chain*>(self);
                                  it.errors += outcome.error ? 1 : 0;
                                  if (--it.left > 0) return it.next();
                                  it.over = true;
                                },
                                this));
    }
  };
  std::array<Chain, 3> chains{Chain{&bucket, 100}, Chain{&bucket, 100}, Chain{&bucket, 100}};
  for (Chain& chain : chains) chain.next();
  for (Chain& chain : chains) {
    REQUIRE(eventually([&] { return chain.over.load(); }));
    CHECK(chain.errors == 0);
  }
}
