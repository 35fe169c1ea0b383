// Connecting to servers that misbehave before the first call, what they say of their version, and
// connections that are dropped in silence while idle. Threading: as calls_test.cpp.
#include <array>

#include "sluice/extend/subscription.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "tests/redis/fake/rig.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10);

/// Answers calls well, and all else by what `say` makes of its name; a server that ends connections
/// says nothing.
FakeServer::Behaviour saying(std::function<std::string(const std::string& name)> say) {
  return [say = std::move(say)](Peer& peer, int) {
    for (Word at = 1; const auto command = peer.read();) {
      const std::string said = is_call(*command) ? allowing(*command, at++) : say(command->at(0));
      if (said.empty() || !peer.send(said)) return;
    }
  };
}

/// A server that answers HELLO and INFO so.
FakeServer::Behaviour telling(std::string hello, std::string info = "-ERR unknown command\r\n") {
  return saying([hello = std::move(hello), info = std::move(info)](const std::string& name) {
    return name == "HELLO"  ? hello
           : name == "INFO" ? info
           : name == "PING" ? "+PONG\r\n"
                            : "+OK\r\n";
  });
}

struct Ended {
  std::error_code error;
  std::string text;
};

/// How a call ends with this server: with nothing but its text if it was decided.
Ended ask(const FakeServer::Behaviour& behaviour, Span within = 20s) {
  const Rig rig(behaviour);
  try {
    static_cast<void>(decide(*rig.store, Plan((*rig.bucket).acquire_step("a")).within(within)));
  } catch (const std::system_error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

const std::string unknown = "-ERR unknown command 'HELLO'\r\n";
constexpr Span idle = 20ms;

void be_idle() { std::this_thread::sleep_for(2 * idle); }

/// Answers the login and one call on the first connection, and then reads what comes, of which it
/// counts calls and PINGs.
struct Dropped {
  explicit Dropped(Span patience = 500ms) : patience_(patience) {}

  std::atomic<int> calls{0};
  std::atomic<int> checks{0};
  Span patience_;
  Rig rig{[this](Peer& peer, int number) {
            if (number > 0) return serve_well(peer);
            const auto call = peer.read_call();
            if (!call || !peer.send(allowing(*call, 1))) return;
            while (const auto command = peer.read()) ++(is_call(*command) ? calls : checks);
          },
          [this](RedisOptions& options) {
            options.check_idle_after = idle;
            options.connect_timeout = patience_;  // the check takes half of it
          },
          FakeServer::Serving::at_once};
};

}  // namespace

TEST_CASE("without a login that makes sense nothing is sent, and the call says so", "[fake]") {
  for (const std::string reply :
       {"", "garbage", "?\r\n", "*1\r\n", "*-1\r\n", "*1000000000\r\n", ":1\r\n", "$3\r\nabc\r\n",
        "$2147483647\r\n", "*2\r\n$2147483647\r\n", "*2\r\n+version\r\n",
        "*2\r\n+version\r\n+7.0.0\r\n+OK\r\n", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "+OK\r\n*"}) {
    for (const bool closes : {false, true}) {
      CAPTURE(reply, closes);
      std::atomic<bool> was_called{false};
      const auto error = ask(
                             [&](Peer& peer, int) {
                               const auto command = peer.read();
                               was_called = was_called || (command && is_call(*command));
                               if (peer.send(reply) && !closes) peer.wait_for_close();
                             },
                             100ms)
                             .error;
      CHECK(error == Errc::not_connected);
      CHECK_FALSE(was_called);
    }
  }
}

TEST_CASE("a reply to nothing behind the login ends the attempt", "[fake]") {
  const auto talks = [](const std::string& name) -> std::string {
    return name == "PING" ? "+PONG\r\n+PONG\r\n" : "+OK\r\n";
  };
  CHECK(ask(saying(talks), 100ms).error == Errc::not_connected);
}

TEST_CASE("reconnecting to a server that closes at once is bounded by the back-off",
          "[fake][C-036]") {
  const bool logs_in = GENERATE(false, true);
  const Rig rig([=](Peer& peer, int) {
    for (int i = 0; logs_in && i < 2; ++i) {
      if (!peer.read() || !peer.send("+OK\r\n")) return;
    }
  });
  const SystemClock clock;
  for (const Time end = clock.now() + 1s; clock.now() < end;) {
    // Logged in, the call may be sent just before the server closes.
    const auto error = rig.error(200ms);
    CHECK((error == Failure::not_executed || (logs_in && error == Errc::unknown)));
  }
  // The pauses are drawn from [0, 10 ms * 2^n), at most 250 ms: 7 of them are at most 1.06 s in
  // all, and a run of 40 pauses within 1 s is less likely than 2^-60.
  CHECK(rig.server.connections() >= 3);
  CHECK(rig.server.connections() <= 40);
}

TEST_CASE("limits of 0 and unlimited ones ask no server", "[fake][constant]") {
  RedisOptions options;
  options.unix_socket = "/nonexistent/socket";
  const auto store = make_redis_store(options);
  const TokenBucket none(*store, "none", Quota::never());
  const TokenBucket all(*store, "all", Quota::unlimited());
  CHECK(none.try_acquire("k").retry_after == Decision::never);
  CHECK(none.acquire("k", 1, Deadline::never()).retry_after == Decision::never);
  CHECK(all.try_acquire("k", 5).allowed);
  CHECK(all.acquire("k", 5, 1s).granted == 5);
  const Lease lease = ConcurrencyLimiter(*store, "jobs", unlimited).try_acquire("k");
  CHECK(lease);
  const std::array both{all.acquire_step("k"), none.acquire_step("k")};
  CHECK(decide(*store, both).step == 1);
  std::array<Decision, 2> results;
  std::array<std::error_code, 2> errors;
  const std::array plans{Plan(both[0]), Plan(both[1])};
  decide_batch(*store, plans, results, errors);
  CHECK((results[0].allowed && !results[1].allowed && !errors[0] && !errors[1]));
  // With another step, the server is asked.
  const TokenBucket some(*store, "some", quota);
  const std::array mixed{all.acquire_step("k"), some.acquire_step("k")};
  std::error_code error;
  (void)decide(*store, Plan(mixed).within(50ms), error);
  CHECK(error == Errc::not_connected);
}

TEST_CASE("a server older than 7.0 is refused with its version", "[fake][version]") {
  for (const std::string version : {"6.2.14", "6.0.0", "5.0.7", "0.0.1", "6.99.99"}) {
    const std::string info = bulk("# Server\r\nredis_version:" + version + "\r\nredis_mode:x\r\n");
    for (const auto& server : {telling(hello_reply(version)), telling(unknown, info)}) {
      CAPTURE(version);
      const Ended ended = ask(server, 300ms);
      CHECK(ended.error == Errc::not_connected);
      CHECK(ended.text.find("redis " + version) != std::string::npos);
      CHECK(ended.text.find("7.0") != std::string::npos);
    }
  }
}

TEST_CASE("a server from 7.0 on is served, whatever it calls itself, and one that tells no version",
          "[fake][version]") {
  std::vector<std::string> replies{"+OK\r\n", "*0\r\n"};
  for (const char* version : {"7.0.0", "7.2.4", "8.0.1", "10.0", "255.255.255", "7", "garbage", "",
                              "-1", "v6.2", "99999999999999999999.1"}) {
    replies.push_back(hello_reply(version));
    replies.push_back(hello_reply(version, "valkey"));
  }
  for (const std::string& reply : replies) {
    CAPTURE(reply);
    CHECK_FALSE(ask(telling(reply)).error);
  }
  for (const std::string& info :
       {bulk("# Server\r\nredis_version:7.0.15\r\n"), bulk("# Server\r\n"),
        std::string("-NOPERM no\r\n"), std::string("-ERR unknown command\r\n")}) {
    CAPTURE(info);
    CHECK_FALSE(ask(telling(unknown, info)).error);
    CHECK_FALSE(ask(telling("-NOPERM no\r\n", info)).error);
  }
}

TEST_CASE("a proxy that ends connections at HELLO takes calls, and nothing else is sent to it",
          "[fake][version]") {
  std::atomic<int> closed{0};
  // As twemproxy: ends the connection at each command that it does not know.
  const Rig rig(
      [&](Peer& peer, int) {
        for (Word at = 1; const auto command = peer.read();) {
          const std::string& name = command->at(0);
          const std::string said = name == "PING"      ? "+PONG\r\n"
                                   : name == "EVALSHA" ? "-NOSCRIPT no\r\n"
                                   : name == "EVAL"    ? allowing(*command, at++)
                                                       : "";
          if (said.empty()) ++closed;
          if (said.empty() || !peer.send(said)) return;
        }
      },
      [](RedisOptions& options) { options.call_timeout = 20s; }, FakeServer::Serving::at_once);
  CHECK_FALSE(rig.error());
  CHECK(rig.store->health().nodes.at(0).version.empty());
  rig.store->notify("a");
  const auto watch = rig.store->subscribe("a", [] {});
  for (int i = 0; i < 3; ++i) CHECK_FALSE(rig.error());
  CHECK(eventually([&] { return closed == 4; }));  // two HELLO of each of its connections
  CHECK_FALSE(rig.error());
  CHECK(rig.stats().connections == 1);
  CHECK(rig.stats().failed_attempts == 0);
  CHECK(closed == 4);
  CHECK(rig.stats().subscriptions == 0);
}

TEST_CASE("a server that ends one connection at HELLO is asked again", "[fake][version]") {
  std::atomic<int> hellos{0};
  const Rig rig(saying([&](const std::string& name) -> std::string {
    if (name == "HELLO") return ++hellos == 1 ? "" : hello_reply("7.2.4");
    return name == "PING" ? "+PONG\r\n" : "+OK\r\n";
  }));
  CHECK_FALSE(rig.error());
  CHECK(hellos > 1);
  CHECK(rig.store->health().nodes.at(0).version == "7.2.4");
}

TEST_CASE("a server is asked for its health once a second at most", "[fake]") {
  std::atomic<int> infos{0};
  const Rig rig(saying([&](const std::string& name) -> std::string {
    if (name == "INFO") ++infos;
    return name == "INFO" ? bulk("role:master") : name == "PING" ? "+PONG\r\n" : "+OK\r\n";
  }));
  const SystemClock clock;
  const Time begin = clock.now();
  for (int i = 0; i < 100; ++i) {
    CHECK_FALSE(rig.error());
    static_cast<void>(rig.store->health());
  }
  CHECK_FALSE(rig.error());
  CHECK(infos >= 1);
  CHECK(infos <= 2 + (clock.now() - begin) / 1s);
}

TEST_CASE("a connection that is dropped in silence while idle costs no call", "[fake][idle]") {
  const Dropped net;
  REQUIRE_FALSE(net.rig.error());
  be_idle();
  Crowd crowd(4);
  net.rig.ask_all(crowd);
  CHECK(crowd.wait());
  for (const Asked& call : crowd) CHECK_FALSE(call.error);
  CHECK(net.calls == 0);
  CHECK(net.checks == 1);
  CHECK(net.rig.stats().unknown == 0);
  CHECK(net.rig.stats().connections == 2);
  const auto failure = net.rig.stats().last_failure;
  REQUIRE(failure);
  CHECK(failure->kind == RedisEvent::Kind::lost);
  CHECK(failure->cause == "no answer within 250 ms");
}

TEST_CASE("a call whose time passes during the check was not executed", "[fake][idle]") {
  const Dropped net(1h);
  REQUIRE_FALSE(net.rig.error());
  be_idle();
  CHECK(net.rig.error(20ms) == Errc::timed_out);
  CHECK(net.calls == 0);
  CHECK(net.rig.stats().connections == 1);
}

TEST_CASE("a connection that answers the check is kept, and one in use is not checked",
          "[fake][idle]") {
  for (const std::string reply : {"+PONG\r\n", "-NOPERM no\r\n"}) {
    for (const bool is_idle : {true, false}) {
      CAPTURE(reply, is_idle);
      std::atomic<int> pings{0};
      const Rig rig(
          saying([&](const std::string& name) -> std::string {
            if (name != "PING") return "+OK\r\n";
            ++pings;
            return reply;
          }),
          [&](RedisOptions& options) { options.check_idle_after = is_idle ? idle : Span(24h); });
      CHECK_FALSE(rig.error());
      const int before = pings;  // of the login
      for (int i = 0; i < 2; ++i) {
        be_idle();
        CHECK_FALSE(rig.error());
      }
      CHECK(pings - before == (is_idle ? 2 : 0));
      CHECK(rig.stats().connections == 1);
    }
  }
}
