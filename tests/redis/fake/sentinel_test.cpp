// The store against Sentinels that help nobody, or replace the master. Threading: the fixtures'.
#include "tests/redis/fake/cluster.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10).burst(5);

}  // namespace

TEST_CASE("a Sentinel that names nobody or nonsense gives a reason", "[fake][sentinel]") {
  for (const std::string& reply :
       {std::string("*-1\r\n"), std::string("$-1\r\n"), array({}), array({bulk("h")}),
        array({bulk("h"), bulk("0")}), array({bulk("h"), bulk("65536")}),
        array({bulk(""), bulk("1")}), std::string("-IDONTKNOW\r\n"), std::string("+OK\r\n"),
        std::string("*1000000000\r\n"), "*2\r\n$1000000\r\n" + std::string(1'000'000, 'h')}) {
    CAPTURE(reply.substr(0, 40));
    FakeServer sentinel(
        [&](Peer& peer, int) {
          while (peer.read_behind_login()) {
            if (!peer.send(reply)) return;
          }
        },
        FakeServer::Serving::at_once);
    const auto store = make_redis_store(fake_sentinel(sentinel));
    const Bucket bucket(*store, quota);
    CHECK(bucket.error("alice", 100ms) == Errc::not_connected);
    CHECK(eventually([&] {
      const auto last = store->stats().last_failure;
      return last && last->step == RedisStep::discover && !last->cause.empty();
    }));
  }
}

TEST_CASE("a call that no Sentinel helps says that they refuse the login", "[fake][sentinel]") {
  FakeServer sentinel(
      [&](Peer& peer, int) {
        while (peer.read()) {
          if (!peer.send("-NOAUTH Authentication required.\r\n")) return;
        }
      },
      FakeServer::Serving::at_once);
  const auto store = make_redis_store(fake_sentinel(sentinel));
  const TokenBucket bucket(*store, "api", quota);
  REQUIRE(eventually([&] { return store->stats().last_failure.has_value(); }));
  std::string text;
  try {
    static_cast<void>(decide(*store, Plan(bucket.acquire_step("a")).within(100ms)));
  } catch (const std::system_error& error) {
    CHECK(error.code() == Errc::not_connected);
    text = error.what();
  }
  CHECK(text.find("login at 127.0.0.1:" + std::to_string(sentinel.port()) + ": NOAUTH") !=
        std::string::npos);
}

TEST_CASE("a master that is replaced while the store logs in is not used", "[fake][sentinel]") {
  std::atomic<bool> is_greeted{false};  // the old master has heard ROLE
  std::atomic<bool> is_replaced{false};
  std::atomic<int> misled{0};
  const auto master = [&](bool is_old) -> FakeServer::Behaviour {
    return [&, is_old](Peer& peer, int) {
      Word at = 1;
      while (const auto asked = peer.read_behind_login()) {
        const bool is_role = asked->at(0) == "ROLE";
        if (is_role && is_old) {
          is_greeted = true;
          eventually([&] { return is_replaced.load(); });
        }
        if (!is_role && is_old) ++misled;
        if (!peer.send(is_role ? array({bulk("master")}) : allowing(*asked, at++))) return;
      }
    };
  };
  FakeServer before(master(true), FakeServer::Serving::at_once);
  FakeServer after(master(false), FakeServer::Serving::at_once);
  const auto named = [](const FakeServer& server) {
    return array({loopback, bulk(std::to_string(server.port()))});
  };
  FakeServer sentinel(
      [&](Peer& peer, int) {
        bool is_asked_again = false;
        while (const auto asked = peer.read_behind_login()) {
          std::string reply = array({});  // it knows no other Sentinel
          if (asked->at(0) == "SUBSCRIBE") {
            peer.send(array({bulk("subscribe"), bulk("+switch-master"), number(1)}));
            eventually([&] { return is_greeted.load(); });
            reply = array({bulk("message"), bulk("+switch-master"), bulk("mymaster")});
          } else if (asked->at(1) == "GET-MASTER-ADDR-BY-NAME") {
            is_asked_again = is_greeted;
            reply = named(is_greeted ? after : before);
          }
          if (!peer.send(reply)) break;
        }
        if (is_asked_again) is_replaced = true;  // the store has heard the other name
      },
      FakeServer::Serving::at_once);
  const auto store = make_redis_store(fake_sentinel(sentinel));
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("alice"));
  CHECK(misled == 0);
  CHECK(after.connections() >= 1);
}
