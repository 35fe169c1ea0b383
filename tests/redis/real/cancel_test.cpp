// Stop requests at every moment of a call, and the bound on calls in flight.
// Threading: the test's thread asks; stop requests also come from others and from completions.
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1'000'000);

}  // namespace

TEST_CASE("a call that is cancelled before it is sent is not executed", "[redis]") {
  if (redis_left_out()) return;
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

TEST_CASE("a call that is cancelled after it was sent is unknown, and its reply goes nowhere",
          "[redis]") {
  if (redis_left_out()) return;
  RedisServer server;
  const auto store = connect_socket(server);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("warm"));
  server.suspend();
  std::stop_source stop;
  Asked sent, next;
  bucket.ask(sent, "a", 20s, stop.get_token());
  // The server hangs, so that "sent" is seen by a call that times out behind it.
  CHECK(bucket.error("b", 10ms) == Errc::unknown);
  stop.request_stop();
  CHECK(sent.wait().error == Errc::unknown);
  bucket.ask(next, "c", 20s);
  server.resume();
  CHECK_FALSE(next.wait().error);
  CHECK(store->stats().late_replies == 2);
  CHECK(store->stats().connections == 1);
}

TEST_CASE("10,000 calls end with one stop request, each once", "[redis]") {
  if (redis_left_out()) return;
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

TEST_CASE("stop requests that race with answers end each call once, and truly", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  const auto store = connect_socket(server);
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
  if (redis_left_out()) return;
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
  if (redis_left_out()) return;
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
