// A connection that ends in the middle of a write, at every byte that matters: what it took a byte
// of is unknown, and all else is decided on the next connection.
// Threading: as calls_test.cpp.
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/sending.hpp"
#include "tests/redis/fake/server.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10);
constexpr std::size_t calls = 3;
constexpr Word next_at = 500;  // what the second connection answers starts there

/// A server whose first connection falls silent when the test wants it to, and a store on it that
/// has made a call there.
struct Scene {
  std::atomic<bool> is_mute{false};
  FakeServer server{[this](Peer& peer, int number) {
    if (number > 0) return serve_well(peer, next_at);
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      if (is_mute) return peer.wait_for_close();
      if (!peer.send(allowing(*call, at))) return;
    }
  }};
  std::unique_ptr<RedisStore> store;
  Bucket bucket;
  int fd = -1;
  std::size_t bytes = 0;  // of a request

  Scene() : store(make_redis_store(options())), bucket(*store, quota) {
    REQUIRE(eventually([&] {
      const Sending sending;
      REQUIRE_FALSE(bucket.error("a", 1h));
      fd = sending.fd();
      bytes = sending.size();
      return sending.happened();
    }));
    is_mute = true;
  }

  /// Asks `crowd` at once. The socket takes so many bytes of it and ends. True if this thread
  /// wrote.
  bool ask(Crowd& crowd, std::size_t takes) const {
    const Step step = (*bucket).acquire_step("a");
    const std::vector<Plan> plans(crowd.size(), Plan(step).within(1h));
    std::vector<Completion> done;
    for (std::size_t i = 0; i < crowd.size(); ++i) done.push_back(crowd[i].completion());
    const Cut cut(fd, takes);
    const Sending sending;
    store->execute_batch(plans, done);
    REQUIRE(crowd.wait());
    return sending.happened();
  }

  [[nodiscard]] RedisOptions options() const {
    RedisOptions result;
    result.port = server.port();
    result.connect_timeout = 5s;
    result.stall_timeout = 1h;
    return result;
  }
};

/// Each request of the crowd is `bytes` long and was sent in order, and the socket took `taken`.
void check_ends(Crowd& crowd, std::size_t bytes, std::size_t taken) {
  Time last = to_time(next_at - 1);
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    CAPTURE(i);
    CHECK(crowd[i].answers == 1);
    if (i * bytes < taken) {
      CHECK(crowd[i].error == Errc::unknown);
    } else {
      CHECK_FALSE(crowd[i].error);
      CHECK(crowd[i].decision.at > last);
      last = crowd[i].decision.at;
    }
  }
}

std::vector<std::size_t> boundaries(std::size_t bytes) {
  std::vector<std::size_t> result{0, 1};
  for (std::size_t i = 1; i <= calls; ++i) {
    for (const std::size_t at : {i * bytes - 1, i * bytes, i * bytes + 1}) {
      if (at <= calls * bytes) result.push_back(at);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("of a caller's write that breaks off, what the socket took no byte of is decided later",
          "[fake]") {
  for (const std::size_t takes : boundaries(Scene().bytes)) {
    CAPTURE(takes);
    const bool happened = eventually([&] {
      const Scene scene;
      Crowd crowd(calls);
      const bool wrote = scene.ask(crowd, takes);
      check_ends(crowd, scene.bytes, takes);
      CHECK(scene.store->stats().unknown == (takes + scene.bytes - 1) / scene.bytes);
      CHECK(eventually([&] { return scene.store->stats().connections == 2; }));
      return wrote;
    });
    CHECK(happened);
  }
}

TEST_CASE(
    "of a write behind other calls that breaks off, what the socket took no byte of is "
    "decided later",
    "[fake]") {
  for (const std::size_t takes : boundaries(Scene().bytes)) {
    CAPTURE(takes);
    const Scene scene;
    Asked first;
    scene.bucket.ask(first, "a", 1h);  // is never answered
    REQUIRE(eventually([&] {
      Asked probe;
      scene.bucket.ask(probe, "a", 1ms);
      return probe.wait().error == Failure::unknown;  // so that the first was sent as well
    }));
    Crowd crowd(calls);
    CHECK_FALSE(scene.ask(crowd, takes));
    CHECK(first.wait().error == Errc::unknown);
    check_ends(crowd, scene.bytes, takes);
    CHECK(eventually([&] { return scene.store->stats().connections == 2; }));
  }
}

TEST_CASE("a call of which the socket took no byte ends as not executed if its time is over first",
          "[fake]") {
  std::atomic<bool> is_mute{false};
  std::atomic<int> heard{0};
  FakeServer server([&](Peer& peer, int number) {
    if (number > 0) return peer.wait_for_close();  // does not let the client in
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      ++heard;
      if (is_mute || !peer.send(allowing(*call, at))) return peer.wait_for_close();
    }
  });
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 20s;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  int fd = -1;
  REQUIRE(eventually([&] {
    const Sending sending;
    REQUIRE_FALSE(bucket.error("a", 1h));
    fd = sending.fd();
    return sending.happened();
  }));
  is_mute = true;
  const int before = heard;
  std::stop_source stop;
  Asked late, stopped;
  {
    const Cut cut(fd, 0);
    bucket.ask(late, "a", 50ms);
    bucket.ask(stopped, "a", 1h, stop.get_token());
    CHECK(late.wait().error == Errc::not_connected);
  }
  CHECK(stopped.answers == 0);
  stop.request_stop();
  CHECK(stopped.wait().error == Errc::cancelled);
  Asked left;
  bucket.ask(left, "a", 1h);
  CHECK(left.answers == 0);
  CHECK(heard == before);
  CHECK(store->stats().unknown == 0);
}

TEST_CASE("a call that is cancelled behind a full socket is not executed, and never sent",
          "[fake]") {
  std::atomic<bool> reads{false};
  std::atomic<std::size_t> heard{0};
  FakeServer server([&](Peer& peer, int) {
    const auto first = peer.read_call();
    if (!first || !eventually([&] { return reads.load(); })) return;
    if (!peer.send(allowing(*first, 1))) return;
    for (Word at = 2; const auto call = peer.read_call(); ++at) {
      ++heard;
      if (!peer.send(allowing(*call, at))) return;
    }
  });
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 5s;
  options.stall_timeout = 1h;
  options.max_in_flight = 100'000;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  std::stop_source stop;
  Crowd crowd(40'000);  // more than a socket takes
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    bucket.ask(crowd[i], "a", 1h, stop.get_token());
  }
  Asked late;
  bucket.ask(late, "a", 1ms);  // and the socket is full
  CHECK(late.wait().error == Errc::timed_out);
  stop.request_stop();
  REQUIRE(crowd.wait());
  const auto with = [&](Errc code) {
    return crowd.count([=](const Asked& call) { return call.error == code; });
  };
  CHECK(with(Errc::unknown) > 0);
  CHECK(with(Errc::cancelled) > 0);
  CHECK(with(Errc::unknown) + with(Errc::cancelled) == crowd.size());
  reads = true;
  CHECK_FALSE(bucket.error("a", 1h));
  CHECK(heard == with(Errc::unknown));  // one was read before, and one was asked now
  CHECK(store->stats().late_replies == with(Errc::unknown));
  CHECK(store->stats().connections == 1);
}
