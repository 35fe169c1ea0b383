// The store against nodes of a cluster, and Sentinels, that lie. Threading: the fixtures'.
#include <functional>

#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake_server.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10).burst(5);

std::string number(std::int64_t value) { return ":" + std::to_string(value) + "\r\n"; }

/// A row of CLUSTER SLOTS.
std::string row(std::int64_t first, std::int64_t last, const std::string& host,
                std::uint16_t port) {
  return "*3\r\n" + number(first) + number(last) + "*3\r\n" + host + number(port) + bulk("id");
}

std::string array(const std::vector<std::string>& elements) {
  std::string reply = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) reply += element;
  return reply;
}

const std::string loopback = bulk("127.0.0.1");

/// A node that answers CLUSTER SLOTS with `map()` and each call with `answer()`, or well without
/// one.
FakeServer::Behaviour node(std::function<std::string()> map,
                           std::function<std::string()> answer = {}) {
  return [map = std::move(map), answer = std::move(answer)](Peer& peer, int) {
    Word at = 1;
    while (const auto asked = peer.read_behind_login()) {
      const bool is_map = asked->at(0) == "CLUSTER";
      const std::string reply = is_map ? map() : answer ? answer() : allowing(*asked, at++);
      if (!peer.send(reply)) return;
    }
  };
}

RedisOptions options_for(std::initializer_list<const FakeServer*> nodes) {
  RedisOptions options;
  for (const FakeServer* server : nodes) options.cluster.push_back({"127.0.0.1", server->port()});
  options.call_timeout = 20s;
  options.connect_timeout = 20s;
  return options;
}

std::string moved_to(std::uint16_t port) {
  return "-MOVED 1 127.0.0.1:" + std::to_string(port) + "\r\n";
}

}  // namespace

TEST_CASE("a call that is sent on for ever fails, and was not executed", "[fake][cluster]") {
  std::uint16_t second_port = 0;
  std::uint16_t first_port = 0;
  const auto no_map = [] { return std::string("-ERR no map\r\n"); };
  std::atomic<int> calls{0};
  FakeServer second(node(no_map,
                         [&] {
                           ++calls;
                           return moved_to(first_port);
                         }),
                    FakeServer::Serving::at_once);
  second_port = second.port();

  SECTION("to itself") {
    FakeServer self(node(no_map,
                         [&] {
                           ++calls;
                           return moved_to(first_port);
                         }),
                    FakeServer::Serving::at_once);
    first_port = self.port();
    const auto store = make_redis_store(options_for({&self}));
    const Bucket bucket(*store, quota);
    CHECK(bucket.error("alice") == Errc::moved);
    CHECK(calls == 6);
  }
  SECTION("in a ring") {
    FakeServer first(node(no_map,
                          [&] {
                            ++calls;
                            return moved_to(second_port);
                          }),
                     FakeServer::Serving::at_once);
    first_port = first.port();
    const auto store = make_redis_store(options_for({&first}));
    const Bucket bucket(*store, quota);
    CHECK(bucket.error("alice") == Errc::moved);
    CHECK(calls == 6);
  }
  SECTION("to nonsense") {
    for (const std::string& words :
         {std::string("MOVED"), std::string("MOVED 1"), std::string("MOVED 16384 127.0.0.1:1"),
          std::string("MOVED 1 127.0.0.1:0"), std::string("MOVED 1 127.0.0.1:65536"),
          std::string("MOVED 1 127.0.0.1"), std::string("MOVED x 127.0.0.1:1"),
          "MOVED 1 " + std::string(300, 'h') + ":1", std::string("ASK"),
          std::string("ASK 1 ?:1")}) {
      CAPTURE(words);
      FakeServer server(node(no_map, [&] { return "-" + words + "\r\n"; }),
                        FakeServer::Serving::at_once);
      const auto store = make_redis_store(options_for({&server}));
      const Bucket bucket(*store, quota);
      const std::error_code error = bucket.error("alice");
      CHECK(error == (words.starts_with("ASK") ? Errc::ask : Errc::moved));
      CHECK(error == Failure::not_executed);
    }
  }
}

TEST_CASE("a call behind ASK goes to the other node, in one write with ASKING", "[fake][cluster]") {
  const auto no_map = [] { return std::string("-ERR no map\r\n"); };
  std::vector<std::string> seen;
  FakeServer importing(
      [&](Peer& peer, int) {
        Word at = 1;
        while (const auto asked = peer.read_behind_login()) {
          seen.push_back(asked->at(0));
          const bool asks = asked->at(0) == "ASKING";
          if (!peer.send(asks ? std::string("+OK\r\n") : allowing(*asked, at++))) return;
        }
      },
      FakeServer::Serving::at_once);
  std::atomic<int> calls{0};
  FakeServer owner(node(no_map,
                        [&] {
                          ++calls;
                          return "-ASK 1 127.0.0.1:" + std::to_string(importing.port()) + "\r\n";
                        }),
                   FakeServer::Serving::at_once);
  const auto store = make_redis_store(options_for({&owner}));
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("alice"));
  CHECK_FALSE(bucket.error("alice"));
  CHECK(calls == 2);  // ASK does not move the slot
  CHECK(seen == std::vector<std::string>{"ASKING", "EVALSHA", "ASKING", "EVALSHA"});
}

TEST_CASE("a map that cannot be is not followed, and the nodes go on", "[fake][cluster]") {
  std::vector<std::string> many;
  for (int i = 0; i < 100'000; ++i) many.push_back(row(1, 1, loopback, 1));
  const std::string full = row(0, 16'383, loopback, 1);
  for (const std::string& map :
       {array({row(0, 100, loopback, 1), row(100, 16'383, loopback, 2)}),  // overlap
        array({row(0, 16'384, loopback, 1)}), array({row(5, 4, loopback, 1)}),
        array({row(-1, 4, loopback, 1)}), array({row(0, 16'383, loopback, 0)}), array(many),
        std::string("*1000000000\r\n"), std::string("*-1\r\n"), std::string("+OK\r\n"),
        std::string(":1\r\n"), std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), full + full,
        std::string("-ERR This instance has cluster support disabled\r\n"), array({array({})}),
        array({number(1)}),
        std::string("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n")}) {
    CAPTURE(map.substr(0, 60));
    FakeServer server(node([&] { return map; }), FakeServer::Serving::at_once);
    Events events;
    RedisOptions options = options_for({&server});
    options.on_event = events.listener();
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    CHECK_FALSE(bucket.error("alice"));
    REQUIRE(eventually([&] { return store->stats().failed_attempts > 0; }));
    CHECK(store->stats().last_failure->step == RedisStep::discover);
    CHECK(store->stats().last_failure->cause.size() <= 203);
  }
}

TEST_CASE("a node that is cut off from the cluster is left for the one that the others name",
          "[fake][cluster]") {
  std::uint16_t owner_port = 0;
  std::uint16_t first_port = 0;
  const auto map_of = [](const std::uint16_t& port) {
    return [&port] { return array({row(0, 16'383, loopback, port)}); };
  };
  FakeServer owner(node(map_of(owner_port)), FakeServer::Serving::at_once);
  owner_port = owner.port();
  FakeServer first(node(map_of(first_port), [] { return std::string("-CLUSTERDOWN no\r\n"); }),
                   FakeServer::Serving::at_once);
  first_port = first.port();
  FakeServer other(node(map_of(owner_port)), FakeServer::Serving::at_once);
  const auto store = make_redis_store(options_for({&first, &other}));
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("alice"));
  CHECK(owner.connections() >= 1);
}

TEST_CASE("a map may have gaps, and hosts that mean the one that was asked", "[fake][cluster]") {
  std::uint16_t port = 0;
  for (const std::string& host : {bulk(""), std::string("$-1\r\n"), loopback}) {
    CAPTURE(host);
    FakeServer owner(node([] { return array({}); }), FakeServer::Serving::at_once);
    port = owner.port();
    const auto map = [&] {
      return array({row(0, 8000, host, port), row(8002, 16'383, host, port)});
    };
    FakeServer first(node(map, [] { return std::string("-CLUSTERDOWN no\r\n"); }),
                     FakeServer::Serving::at_once);
    const auto store = make_redis_store(options_for({&first}));
    const Bucket bucket(*store, quota);
    CHECK_FALSE(bucket.error("alice"));
    CHECK(owner.connections() == 1);
  }
}

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
    RedisOptions options;
    options.sentinel.emplace();
    options.sentinel->master = "mymaster";
    options.sentinel->sentinels = {{"127.0.0.1", sentinel.port()}};
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    CHECK(bucket.error("alice", 100ms) == Errc::not_connected);
    CHECK(eventually([&] {
      const auto last = store->stats().last_failure;
      return last && last->step == RedisStep::discover && !last->cause.empty();
    }));
  }
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
  RedisOptions options;
  options.call_timeout = 20s;
  options.connect_timeout = 20s;
  options.sentinel.emplace();
  options.sentinel->master = "mymaster";
  options.sentinel->sentinels = {{"127.0.0.1", sentinel.port()}};
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("alice"));
  CHECK(misled == 0);
  CHECK(after.connections() == 1);
}

TEST_CASE("a switch that was missed is found when a Sentinel is listened to again",
          "[fake][sentinel]") {
  std::atomic<bool> is_served{false};
  std::atomic<bool> is_replaced{false};
  const auto master = [](Peer& peer, int) {
    Word at = 1;
    while (const auto asked = peer.read_behind_login()) {
      const bool is_role = asked->at(0) == "ROLE";
      if (!peer.send(is_role ? array({bulk("master")}) : allowing(*asked, at++))) return;
    }
  };
  FakeServer before(master, FakeServer::Serving::at_once);
  FakeServer after(master, FakeServer::Serving::at_once);
  FakeServer sentinel(
      [&](Peer& peer, int) {
        while (const auto asked = peer.read_behind_login()) {
          std::string reply = array({});  // it knows no other Sentinel
          if (asked->at(0) == "SUBSCRIBE") {
            reply = array({bulk("subscribe"), bulk("+switch-master"), number(1)});
          } else if (asked->at(1) == "GET-MASTER-ADDR-BY-NAME") {
            const std::uint16_t port = is_replaced ? after.port() : before.port();
            reply = array({loopback, bulk(std::to_string(port))});
          }
          if (!peer.send(reply)) return;
          if (asked->at(0) == "SUBSCRIBE" && !is_replaced) {
            eventually([&] { return is_served.load(); });
            is_replaced = true;
            return;
          }
        }
      },
      FakeServer::Serving::at_once);
  RedisOptions options;
  options.call_timeout = 20s;
  options.connect_timeout = 20s;
  options.sentinel.emplace();
  options.sentinel->master = "mymaster";
  options.sentinel->sentinels = {{"127.0.0.1", sentinel.port()}};
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("alice"));
  CHECK(before.connections() == 1);
  is_served = true;
  CHECK(eventually([&] { return after.connections() == 1; }));
  CHECK_FALSE(bucket.error("alice"));
}
