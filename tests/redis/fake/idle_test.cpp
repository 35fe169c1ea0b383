// A connection that was dropped in silence while nobody used it: found out before a call is sent.
// Threading: as calls_test.cpp. The tests wait in real time, as long as a connection has to be
// idle.
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/server.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10);
constexpr Span idle = 20ms;

RedisOptions options_for(const FakeServer& server) {
  RedisOptions options;
  options.port = server.port();
  options.call_timeout = 20s;
  options.stall_timeout = 1h;
  options.check_idle_after = idle;
  return options;
}

void be_idle() { std::this_thread::sleep_for(2 * idle); }

/// Answers the login and one call, and then reads what comes, of which it keeps the names.
struct Dropped {
  std::atomic<int> connections_to_drop{1};
  std::atomic<int> calls{0};   // on dropped connections, behind the first one of each
  std::atomic<int> checks{0};  // PINGs there
  FakeServer server{[this](Peer& peer, int number) {
                      if (number >= connections_to_drop) return serve_well(peer);
                      const auto call = peer.read_call();
                      if (!call || !peer.send(allowing(*call, 1))) return;
                      while (const auto command = peer.read()) {
                        ++(is_call(*command) ? calls : checks);
                      }
                    },
                    FakeServer::Serving::at_once};
};

}  // namespace

TEST_CASE("a connection that is dropped in silence while idle costs no call", "[fake][idle]") {
  Dropped net;
  const auto store = make_redis_store(options_for(net.server));
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("a"));
  be_idle();
  Crowd crowd(4);
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a");
  CHECK(crowd.wait());
  for (const Asked& call : crowd) CHECK_FALSE(call.error);
  CHECK(net.calls == 0);
  CHECK(net.checks == 1);
  CHECK(store->stats().unknown == 0);
  CHECK(store->stats().connections == 2);
  const auto failure = store->stats().last_failure;
  REQUIRE(failure);
  CHECK(failure->kind == RedisEvent::Kind::lost);
  CHECK(failure->cause == "no answer within 250 ms");
}

TEST_CASE("a call whose time passes during the check was not executed", "[fake][idle]") {
  Dropped net;
  RedisOptions options = options_for(net.server);
  options.connect_timeout = 1h;  // the check takes half of it
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("a"));
  be_idle();
  CHECK(bucket.error("a", 20ms) == Errc::timed_out);
  CHECK(net.calls == 0);
  CHECK(store->stats().connections == 1);
}

TEST_CASE("a connection that answers the check is kept, and one in use is not checked",
          "[fake][idle]") {
  for (const std::string reply : {"+PONG\r\n", "-NOPERM no\r\n"}) {
    for (const bool is_idle : {true, false}) {
      CAPTURE(reply, is_idle);
      std::atomic<int> checks{0};
      FakeServer server([&](Peer& peer, int) {
        Word at = 0;
        while (const auto command = peer.read()) {
          const std::string& name = command->at(0);
          if (name == "PING" && at > 0) ++checks;
          if (!peer.send(is_call(*command) ? allowing(*command, ++at)
                         : name == "PING"  ? reply
                                           : "+OK\r\n")) {
            return;
          }
        }
      });
      RedisOptions options = options_for(server);
      if (!is_idle) options.check_idle_after = 24h;
      const auto store = make_redis_store(options);
      const Bucket bucket(*store, quota);
      for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(bucket.error("a"));
        be_idle();
      }
      CHECK(checks == (is_idle ? 2 : 0));
      CHECK(store->stats().connections == 1);
    }
  }
}
