// What the server says of its version at login. Threading: as calls_test.cpp.
#include "sluice/extend/subscription.hpp"
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/server.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10);

/// A server that answers HELLO and INFO so, and every call.
FakeServer::Behaviour telling(std::string hello, std::string info = "-ERR unknown command\r\n") {
  return [hello = std::move(hello), info = std::move(info)](Peer& peer, int) {
    for (Word at = 1; const auto command = peer.read();) {
      const std::string& name = command->at(0);
      const bool is_sent = is_call(*command) ? peer.send(allowing(*command, at++))
                           : name == "HELLO" ? peer.send(hello)
                           : name == "INFO"  ? peer.send(info)
                           : name == "PING"  ? peer.send("+PONG\r\n")
                                             : peer.send("+OK\r\n");
      if (!is_sent) return;
    }
  };
}

struct Ended {
  std::error_code error;
  std::string text;
};

/// How a call ends with this server: with nothing but its text if it was decided.
Ended ask(const FakeServer::Behaviour& behaviour, Span within = 20s) {
  FakeServer server(behaviour);
  RedisOptions options;
  options.port = server.port();
  const auto store = make_redis_store(options);
  const TokenBucket bucket(*store, "api", quota);
  try {
    static_cast<void>(decide(*store, Plan(bucket.acquire_step("a")).within(within)));
  } catch (const std::system_error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

const std::string unknown = "-ERR unknown command 'HELLO'\r\n";

}  // namespace

TEST_CASE("a server older than 7.0 is refused with its version", "[fake][version]") {
  for (const std::string version : {"6.2.14", "6.0.0", "5.0.7", "0.0.1", "6.99.99"}) {
    CAPTURE(version);
    const Ended ended = ask(telling(hello_reply(version)), 300ms);
    CHECK(ended.error == Errc::not_connected);
    CHECK(ended.text.find("redis " + version) != std::string::npos);
    CHECK(ended.text.find("7.0") != std::string::npos);
  }
}

TEST_CASE("a server from 7.0 on is served, whatever it calls itself", "[fake][version]") {
  for (const std::string version : {"7.0.0", "7.2.4", "8.0.1", "10.0", "255.255.255", "7"}) {
    CAPTURE(version);
    CHECK_FALSE(ask(telling(hello_reply(version))).error);
    CHECK_FALSE(ask(telling(hello_reply(version, "valkey"))).error);
  }
}

TEST_CASE("a server that knows no HELLO is asked by INFO", "[fake][version]") {
  const auto info = [](const std::string& version) {
    return bulk("# Server\r\nredis_version:" + version + "\r\nredis_mode:standalone\r\n");
  };
  const Ended refused = ask(telling(unknown, info("5.0.14")), 300ms);
  CHECK(refused.error == Errc::not_connected);
  CHECK(refused.text.find("redis 5.0.14") != std::string::npos);
  CHECK_FALSE(ask(telling(unknown, info("7.0.15"))).error);
  CHECK_FALSE(ask(telling("-NOPERM no\r\n", info("7.2.0"))).error);
}

TEST_CASE("a server that tells no version, as a proxy may, is believed", "[fake][version]") {
  CHECK_FALSE(ask(telling(unknown)).error);
  CHECK_FALSE(ask(telling(unknown, "-NOPERM no\r\n")).error);
  CHECK_FALSE(ask(telling(unknown, bulk("# Server\r\n"))).error);
  CHECK_FALSE(ask(telling("+OK\r\n")).error);
  CHECK_FALSE(ask(telling("*0\r\n")).error);
  for (const std::string version : {"garbage", "", "-1", "v6.2", "99999999999999999999.1"}) {
    CAPTURE(version);
    CHECK_FALSE(ask(telling(hello_reply(version))).error);
  }
}

TEST_CASE("an answer to HELLO that makes no sense ends the attempt", "[fake][version]") {
  for (const std::string reply :
       {":1\r\n", "$3\r\nabc\r\n", "*-1\r\n", "*1000000000\r\n", "*2\r\n$2147483647\r\n", "?\r\n",
        "*2\r\n+version\r\n+7.0.0\r\n+OK\r\n", "*2\r\n+version\r\n"}) {
    CAPTURE(reply);
    CHECK(ask(telling(reply), 300ms).error == Errc::not_connected);
  }
}

TEST_CASE("an answer to HELLO may come byte by byte, and hold what modules say",
          "[fake][version]") {
  const auto slowly = [](Peer& peer, int) {
    const auto first = peer.read();
    if (!first || first->at(0) != "HELLO") return;
    for (const char c : hello_reply("7.0.0")) {
      if (!peer.send({&c, 1})) return;
    }
    serve_well(peer);
  };
  CHECK_FALSE(ask(slowly).error);
}

namespace {

/// As twemproxy: ends the connection at each command that it does not know.
FakeServer::Behaviour knowing_few(std::atomic<int>& closed) {
  return [&closed](Peer& peer, int) {
    for (Word at = 1; const auto command = peer.read();) {
      const std::string& name = command->at(0);
      const bool is_known = name == "PING" || name == "EVALSHA" || name == "EVAL";
      if (!is_known) ++closed;
      if (!is_known || !peer.send(name == "PING"      ? "+PONG\r\n"
                                  : name == "EVALSHA" ? "-NOSCRIPT no\r\n"
                                                      : allowing(*command, at++))) {
        return;
      }
    }
  };
}

}  // namespace

TEST_CASE("a proxy that ends connections at HELLO takes calls, and nothing else is sent to it",
          "[fake][version]") {
  std::atomic<int> closed{0};
  FakeServer server(knowing_few(closed), FakeServer::Serving::at_once);
  RedisOptions options;
  options.port = server.port();
  options.call_timeout = 20s;
  options.connect_timeout = 20s;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("a"));
  CHECK(store->health().nodes.at(0).version.empty());
  store->notify("a");
  const auto watch = store->subscribe("a", [] {});
  for (int i = 0; i < 3; ++i) CHECK_FALSE(bucket.error("a"));
  CHECK(eventually([&] { return closed == 4; }));  // two HELLO of each of its connections
  CHECK_FALSE(bucket.error("a"));
  CHECK(store->stats().connections == 1);
  CHECK(store->stats().failed_attempts == 0);
  CHECK(store->stats().subscriptions == 0);
}

TEST_CASE("a server that ends one connection at HELLO is asked again", "[fake][version]") {
  std::atomic<bool> has_told{false};
  FakeServer server([&](Peer& peer, int number) {
    while (const auto command = peer.read()) {
      const std::string& name = command->at(0);
      if (name == "HELLO" && number == 0) return;
      if (name == "HELLO") has_told = true;
      if (!peer.send(is_call(*command) ? allowing(*command, 1)
                     : name == "HELLO" ? hello_reply("7.2.4")
                     : name == "PING"  ? "+PONG\r\n"
                                       : "+OK\r\n")) {
        return;
      }
    }
  });
  RedisOptions options;
  options.port = server.port();
  const auto store = make_redis_store(options);
  CHECK_FALSE(Bucket(*store, quota).error("a"));
  CHECK(has_told);
  CHECK(store->health().nodes.at(0).version == "7.2.4");
}

TEST_CASE("a server that ends every connection is told with its own reason", "[fake][version]") {
  const Ended ended = ask([](Peer& peer, int) { peer.read(); }, 300ms);
  CHECK(ended.error == Errc::not_connected);
  CHECK(ended.text.find("the server closed the connection") != std::string::npos);
}
