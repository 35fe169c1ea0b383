// A caller that finds the connection idle writes to it itself; here the socket does what a test
// wants with that write.
// Threading: as calls_test.cpp.
#include <poll.h>

#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/sending.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

RedisOptions options_for(const FakeServer& server) {
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 5s;
  options.stall_timeout = 1h;
  options.reconnect_max = 10ms;
  return options;
}

const Quota quota = Quota::per_second(10);

/// Answers when the test wants it to.
struct Hesitant {
  std::atomic<bool> speaks{true};
  FakeServer server{[this](Peer& peer, int) {
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      if (!eventually([this] { return speaks.load(); }) || !peer.send(allowing(*call, at))) return;
    }
  }};
};

/// Makes calls that end well until one of them was written by this thread.
bool settle(const Bucket& bucket) {
  return eventually([&] {
    const Sending sending;
    return !bucket.error("a", 1h) && sending.happened();
  });
}

}  // namespace

TEST_CASE("a caller writes to an idle connection itself, and behind other calls it does not",
          "[fake]") {
  Hesitant hesitant;
  const auto store = make_redis_store(options_for(hesitant.server));
  const Bucket bucket(*store, quota);
  REQUIRE(settle(bucket));
  hesitant.speaks = false;
  Asked first, second;
  bucket.ask(first, "a", 1h);
  const Sending sending;
  bucket.ask(second, "a", 1h);
  hesitant.speaks = true;
  CHECK_FALSE(first.wait().error);
  CHECK_FALSE(second.wait().error);
  CHECK(first.decision.at < second.decision.at);
  CHECK_FALSE(sending.happened());
}

TEST_CASE("what a socket does not take of a caller's write follows, in order", "[fake]") {
  FakeServer server([](Peer& peer, int) { serve_well(peer); });
  const auto store = make_redis_store(options_for(server));
  const Bucket bucket(*store, quota);
  const std::size_t takes = GENERATE(0U, 1U, 1000U);
  CAPTURE(takes);
  REQUIRE(settle(bucket));
  const Step step = (*bucket).acquire_step("a");
  const std::vector<Plan> plans(64, Plan(step).within(1h));  // nothing to wake the other thread for
  const bool happened = eventually([&] {
    Crowd crowd(plans.size());
    std::vector<Completion> done;
    for (std::size_t i = 0; i < crowd.size(); ++i) done.push_back(crowd[i].completion());
    const Sending sending(takes);
    store->execute_batch(plans, done);
    REQUIRE(crowd.wait());
    const Word first_at = crowd[0].decision.at.time_since_epoch().count();
    for (std::size_t i = 0; i < crowd.size(); ++i) {
      REQUIRE_FALSE(crowd[i].error);
      REQUIRE(crowd[i].decision.at == to_time(first_at + static_cast<Word>(i)));
    }
    return sending.happened();
  });
  CHECK(happened);
  CHECK(store->stats().connections == 1);
}

TEST_CASE(
    "a connection that is cut before a caller writes leaves the call unknown if it took a byte",
    "[fake]") {
  const bool reset = GENERATE(false, true);
  const std::size_t takes = GENERATE(10U, 1000U);
  CAPTURE(reset, takes);
  enum class Next { wait, read, cut };
  std::atomic<Next> next{Next::read};
  FakeServer server([&](Peer& peer, int) {
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      if (!peer.send(allowing(*call, at))) return;
      eventually([&] { return next != Next::wait; });
      if (next == Next::cut) break;
    }
    if (reset) peer.reset_on_close();
  });
  const auto store = make_redis_store(options_for(server));
  const Bucket bucket(*store, quota);
  const bool happened = eventually([&] {
    next = Next::wait;
    REQUIRE_FALSE(bucket.error("a", 1h));
    const Sending sending(takes, [&](int fd) {
      next = Next::cut;
      pollfd entry{fd, POLLRDHUP, 0};
      ::poll(&entry, 1, 30'000);
    });
    Asked asked;
    bucket.ask(asked, "a", 1h);
    if (!sending.happened()) next = Next::read;
    asked.wait();
    // A socket that was reset takes nothing: the call goes out on the next connection.
    const bool lost = sending.happened() && !reset;
    CHECK(asked.error == (lost ? make_error_code(Errc::unknown) : std::error_code{}));
    CHECK(asked.answers == 1);
    next = Next::read;
    return sending.happened();
  });
  CHECK(happened);
  CHECK_FALSE(bucket.error("a", 1h));
}

TEST_CASE("a call that its caller wrote ends when its own time is over", "[fake]") {
  Hesitant hesitant;
  const auto store = make_redis_store(options_for(hesitant.server));
  const Bucket bucket(*store, quota);
  const bool happened = eventually([&] {
    REQUIRE(settle(bucket));  // the store's thread sleeps for an hour, or for ever
    hesitant.speaks = false;
    const Sending sending;
    const Time since = store->clock().now();
    Asked asked;
    bucket.ask(asked, "a", 50ms);
    asked.wait();
    hesitant.speaks = true;
    if (!sending.happened()) return false;
    CHECK(asked.error == Errc::unknown);
    CHECK(store->clock().now() - since >= Span{50ms});
    return true;
  });
  CHECK(happened);
}

TEST_CASE("a stop request in the middle of a caller's write ends the call as unknown", "[fake]") {
  Hesitant hesitant;
  const auto store = make_redis_store(options_for(hesitant.server));
  const Bucket bucket(*store, quota);
  const bool happened = eventually([&] {
    REQUIRE(settle(bucket));
    hesitant.speaks = false;
    std::stop_source stop;
    const Sending sending(1, [&](int) { stop.request_stop(); });
    Asked asked;
    bucket.ask(asked, "a", 1h, stop.get_token());
    if (!sending.happened()) hesitant.speaks = true;
    asked.wait();
    CHECK(asked.error == (sending.happened() ? make_error_code(Errc::unknown) : std::error_code{}));
    hesitant.speaks = true;
    return sending.happened();
  });
  CHECK(happened);
  CHECK_FALSE(bucket.error("a", 1h));
  CHECK(store->stats().connections == 1);
}

TEST_CASE("threads that write themselves now and then have their calls decided in order",
          "[fake]") {
  const std::string name =
      "threads that write themselves now and then have their calls decided in order";
  FakeServer server([](Peer& peer, int) { serve_well(peer); });
  const auto store = make_redis_store(options_for(server));
  const Bucket bucket(*store, quota);
  std::atomic<std::size_t> wrong{0}, written{0}, handed_over{0};
  const auto work = [&](Random& random) {
    std::size_t rounds = scaled(2000, 200);
    for (Time last{}; rounds > 0; --rounds) {
      Crowd crowd(random.below(4) + 1);
      for (std::size_t i = 0; i < crowd.size(); ++i) {
        const Sending sending;
        bucket.ask(crowd[i], "a", 1h);
        ++(sending.happened() ? written : handed_over);
      }
      wrong += crowd.wait() ? 0U : 1U;
      for (std::size_t i = 0; i < crowd.size(); ++i) {
        wrong += crowd[i].error || crowd[i].decision.at <= last ? 1U : 0U;
        last = crowd[i].decision.at;
      }
    }
  };
  Random random(name), other(name);
  CAPTURE(random.repeat());
  {
    std::jthread thread([&] { work(other); });
    work(random);
  }
  CHECK(wrong == 0);
  CHECK(handed_over > 0);
  CHECK((written > 0 || settle(bucket)));
  CHECK(store->stats().connections == 1);
}
