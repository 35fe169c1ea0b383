// Ends that come while a call is between its caller and the store's thread: a stop request, the end
// of the store, the deadline. Threading: as calls_test.cpp; some tests hold up the store's thread.
#include "backends/redis/client.hpp"

#include <functional>

#include "tests/redis/fake/rig.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::Client;

namespace {

/// Answers well, and counts the calls that it has read.
struct Counting {
  std::atomic<std::size_t> heard{0};
  FakeServer::Behaviour behave = [this](Peer& peer, int) {
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      ++heard;
      if (!peer.send(allowing(*call, at))) return;
    }
  };
};

struct OpenClient {
  std::shared_ptr<Client> client;

  explicit OpenClient(const RedisOptions& options) : client(std::make_shared<Client>(options, 1)) {
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
  const FakeServer server(it.behave);
  enum class Connection { none, idle, busy };
  for (const auto connection : {Connection::none, Connection::idle, Connection::busy}) {
    CAPTURE(static_cast<int>(connection));
    RedisOptions options = options_for(server);
    if (connection == Connection::none) options.port = 1;
    const OpenClient client(options);
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
  const FakeServer server(it.behave);
  const auto client = std::make_shared<Client>(options_for(server), 1);
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

TEST_CASE("calls that end in the inbox, by a stop, their time or the store's end, are never sent",
          "[fake]") {
  enum class End { stop, time, store };
  const auto end = GENERATE(End::stop, End::time, End::store);
  CAPTURE(static_cast<int>(end));
  Counting it;
  Rig rig(it.behave);
  HeldUp thread;
  thread.hold(rig.bucket);
  std::stop_source stop;
  Crowd ended(50), others(50);
  for (std::size_t i = 0; i < others.size(); ++i) {
    rig.ask(ended[i], end == End::time ? Span{1us} : Span{1h}, stop.get_token());
    if (end != End::store) rig.ask(others[i]);
  }
  if (end == End::stop) stop.request_stop();
  if (end == End::store) thread.then = [&] { rig.store.reset(); };
  const SystemClock clock;
  const Time asked = clock.now();
  REQUIRE(eventually([&] { return clock.now() > asked + Span{5ms}; }));
  CHECK(ended.count([](const Asked& call) { return call.answers > 0; }) == 0);
  thread.may_go = true;
  REQUIRE(ended.wait());
  const Errc code = end == End::stop   ? Errc::cancelled
                    : end == End::time ? Errc::timed_out
                                       : Errc::shut_down;
  CHECK(ended.count([=](const Asked& call) { return call.error == code; }) == ended.size());
  stop.request_stop();  // finds nobody
  REQUIRE(eventually([&] { return thread.is_over.load(); }));
  CHECK(ended.count([](const Asked& call) { return call.answers == 1; }) == ended.size());
  if (end != End::store) {
    REQUIRE(others.wait());
    CHECK(others.count([](const Asked& call) { return !call.error; }) == others.size());
  }
  CHECK(it.heard == (end == End::store ? 1 : 1 + others.size()));
}
