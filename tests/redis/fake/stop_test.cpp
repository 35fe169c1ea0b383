// Ends that come while a call is between its caller and the store's thread: a stop request, the end
// of the store, the deadline. Threading: as calls_test.cpp; some tests hold up the store's thread.
#include "backends/redis/client.hpp"

#include <functional>

#include "tests/redis/fake/server.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::Client;

namespace {

const Quota quota = Quota::per_second(10);

RedisOptions options_for(std::uint16_t port) {
  RedisOptions options;
  options.port = port;
  options.connect_timeout = 5s;
  options.stall_timeout = 1h;
  return options;
}

/// A server that answers well, and how many calls it has read.
struct Counting {
  std::atomic<std::size_t> heard{0};
  FakeServer server{[this](Peer& peer, int) {
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      ++heard;
      if (!peer.send(allowing(*call, at))) return;
    }
  }};
};

struct OpenClient {
  std::shared_ptr<Client> client;

  explicit OpenClient(std::uint16_t port) : client(std::make_shared<Client>(options_for(port), 1)) {
    client->start();
  }
  ~OpenClient() { client->stop(); }
  Client* operator->() const { return client.get(); }

  void submit(CallPtr call) const { client->submit({&call, 1}); }
  /// How a call ends that has so long. The store's thread has gone round meanwhile.
  [[nodiscard]] std::error_code ask(Span within) const {
    Asked asked;
    submit(make_call(asked, 1'000, client->clock().now() + within));
    return asked.wait().error;
  }
};

/// Holds up the store's thread in a completion.
struct HeldUp {
  std::function<void()> then = [] {};  // on that thread, when it may go
  std::atomic<bool> is_held{false};
  std::atomic<bool> may_go{false};
  std::atomic<bool> is_over{false};

  HeldUp() = default;
  HeldUp(const HeldUp&) = delete;
  HeldUp& operator=(const HeldUp&) = delete;
  ~HeldUp() {
    may_go = true;
    eventually([&] { return !is_held || is_over; });
  }

  void hold(const Bucket& bucket) {
    const auto wait = [](void* self, const Outcome&) noexcept {
      auto& it = *static_cast<HeldUp*>(self);
      it.is_held = true;
      eventually([&] { return it.may_go.load(); });
      it.then();
      it.is_over = true;
    };
    const Step step = (*bucket).acquire_step("a");
    (*bucket).store().execute(Plan(step).within(1h), Completion(wait, this));
    REQUIRE(eventually([&] { return is_held.load(); }));
  }
};

}  // namespace

TEST_CASE("a stop request that comes before its call is in the inbox ends the call there",
          "[fake]") {
  Counting it;
  enum class Connection { none, idle, busy };
  for (const auto connection : {Connection::none, Connection::idle, Connection::busy}) {
    CAPTURE(static_cast<int>(connection));
    const OpenClient client(connection == Connection::none ? std::uint16_t{1} : it.server.port());
    Asked asked, others[3];
    std::stop_source stop;
    CallPtr call = make_call(asked, 7, Time::max());
    client->watch(*call, stop.get_token());
    if (connection != Connection::none) REQUIRE_FALSE(client.ask(1h));
    stop.request_stop();
    // The store's thread hears of the request, and finds no such call.
    if (connection == Connection::none) {
      CHECK(client.ask(1ms) == Failure::not_executed);
    } else {
      CHECK_FALSE(client.ask(1h));
    }
    const std::size_t before = it.heard;
    if (connection == Connection::busy) {
      for (Asked& other : others) client.submit(make_call(other, 8, Time::max()));
    }
    client.submit(std::move(call));
    CHECK(asked.wait().error == Errc::cancelled);
    if (connection == Connection::none) continue;
    CHECK_FALSE(client.ask(1h));
    CHECK(it.heard == before + (connection == Connection::busy ? 4 : 1));
  }
}

TEST_CASE("a call that comes behind the end of its client is shut down", "[fake]") {
  Counting it;
  const auto client = std::make_shared<Client>(options_for(it.server.port()), 1);
  client->start();
  Asked asked, stopped;
  std::stop_source stop;
  CallPtr late = make_call(asked, 1, Time::max());
  CallPtr marked = make_call(stopped, 2, Time::max());
  client->watch(*marked, stop.get_token());
  client->stop();
  stop.request_stop();
  client->submit({&late, 1});
  client->submit({&marked, 1});
  CHECK(has_ended(asked, Errc::shut_down));
  CHECK(has_ended(stopped, Errc::shut_down));
  CHECK(it.heard == 0);
}

TEST_CASE("calls that are stopped in the inbox are cancelled and never sent", "[fake]") {
  Counting it;
  const auto store = make_redis_store(options_for(it.server.port()));
  const Bucket bucket(*store, quota);
  HeldUp thread;
  thread.hold(bucket);
  std::stop_source stop;
  Crowd stopped(50), others(50);
  for (std::size_t i = 0; i < others.size(); ++i) {
    bucket.ask(stopped[i], "a", 1h, stop.get_token());
    bucket.ask(others[i], "a", 1h);
  }
  stop.request_stop();
  CHECK(stopped.count([](const Asked& call) { return call.answers > 0; }) == 0);
  thread.may_go = true;
  REQUIRE(stopped.wait());
  REQUIRE(others.wait());
  CHECK(stopped.count([](const Asked& c) { return c.error == Errc::cancelled; }) == 50);
  CHECK(others.count([](const Asked& c) { return !c.error; }) == 50);
  CHECK(it.heard == 51);
}

TEST_CASE("calls that are in the inbox when the store ends are shut down and never sent",
          "[fake]") {
  Counting it;
  auto store = make_redis_store(options_for(it.server.port()));
  HeldUp thread;
  std::stop_source stop;
  Crowd crowd(50);
  thread.then = [&] { store.reset(); };
  {
    const Bucket bucket(*store, quota);
    thread.hold(bucket);
    for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 1h, stop.get_token());
  }
  thread.may_go = true;
  REQUIRE(crowd.wait());
  CHECK(crowd.count([](const Asked& c) { return c.error == Errc::shut_down; }) == crowd.size());
  stop.request_stop();  // finds nobody
  REQUIRE(eventually([&] { return thread.is_over.load(); }));
  CHECK(crowd.count([](const Asked& c) { return c.answers == 1; }) == crowd.size());
  CHECK(it.heard == 1);
}

TEST_CASE("calls whose time is over in the inbox are not executed and never sent", "[fake]") {
  Counting it;
  const auto store = make_redis_store(options_for(it.server.port()));
  const Bucket bucket(*store, quota);
  HeldUp thread;
  thread.hold(bucket);
  Crowd late(20);
  for (std::size_t i = 0; i < late.size(); ++i) bucket.ask(late[i], "a", 1us);
  const Time asked = store->clock().now();
  REQUIRE(eventually([&] { return store->clock().now() > asked + Span{5ms}; }));
  thread.may_go = true;
  REQUIRE(late.wait());
  CHECK(late.count([](const Asked& c) { return c.error == Errc::timed_out; }) == late.size());
  CHECK_FALSE(bucket.error("a", 1h));
  CHECK(it.heard == 2);
}
