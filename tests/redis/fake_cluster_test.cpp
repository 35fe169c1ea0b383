// The store against nodes of a cluster that lie. Threading: the fixtures'.
#include <array>
#include <numeric>
#include <utility>

#include "tests/redis/fake_cluster.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10).burst(5);

}  // namespace

TEST_CASE("a call that is sent on for ever fails, and was not executed", "[fake][cluster]") {
  std::uint16_t second_port = 0;
  std::uint16_t first_port = 0;
  std::atomic<int> calls{0};
  FakeServer second(node(no_map,
                         [&] {
                           ++calls;
                           return redirection("MOVED", first_port);
                         }),
                    FakeServer::Serving::at_once);
  second_port = second.port();

  SECTION("to itself") {
    FakeServer self(node(no_map,
                         [&] {
                           ++calls;
                           return redirection("MOVED", first_port);
                         }),
                    FakeServer::Serving::at_once);
    first_port = self.port();
    const auto store = make_redis_store(fake_cluster({&self}));
    const Bucket bucket(*store, quota);
    CHECK(bucket.error("alice") == Errc::moved);
    CHECK(calls == 6);
  }
  SECTION("in a ring") {
    FakeServer first(node(no_map,
                          [&] {
                            ++calls;
                            return redirection("MOVED", second_port);
                          }),
                     FakeServer::Serving::at_once);
    first_port = first.port();
    const auto store = make_redis_store(fake_cluster({&first}));
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
      const auto store = make_redis_store(fake_cluster({&server}));
      const Bucket bucket(*store, quota);
      const std::error_code error = bucket.error("alice");
      CHECK(error == (words.starts_with("ASK") ? Errc::ask : Errc::moved));
      CHECK(error == Failure::not_executed);
    }
  }
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
    RedisOptions options = fake_cluster({&server});
    options.on_event = events.listener();
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    CHECK_FALSE(bucket.error("alice"));
    REQUIRE(eventually([&] { return store->stats().failed_attempts > 0; }));
    CHECK(store->stats().last_failure->step == RedisStep::discover);
    CHECK(store->stats().last_failure->cause.size() <= 203);
  }
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
    const auto store = make_redis_store(fake_cluster({&first}));
    const Bucket bucket(*store, quota);
    CHECK_FALSE(bucket.error("alice"));
    CHECK(owner.connections() == 1);
  }
}

TEST_CASE("a node without a host in a redirection is the one that sent it, at another port",
          "[fake][cluster]") {
  FakeServer owner(node(no_map), FakeServer::Serving::at_once);
  FakeServer first(node(no_map, [&] { return redirection("MOVED", owner.port(), ""); }),
                   FakeServer::Serving::at_once);
  const auto store = make_redis_store(fake_cluster({&first}));
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("alice"));
  CHECK_FALSE(bucket.error("alice"));
  CHECK(owner.connections() == 1);
}

TEST_CASE("a call that is moved back from the importing node goes without ASKING",
          "[fake][cluster]") {
  std::uint16_t owner_port = 0;
  FakeServer importing(node(no_map, [&] { return redirection("MOVED", owner_port); }),
                       FakeServer::Serving::at_once);
  std::vector<std::string> seen;
  FakeServer owner(
      [&](Peer& peer, int) {
        Word at = 1;
        while (const auto asked = peer.read_behind_login()) {
          const std::string& name = asked->at(0);
          if (name != "CLUSTER") seen.push_back(name);
          const bool is_first = seen.size() == 1;
          if (!peer.send(name == "CLUSTER" ? no_map()
                         : is_first        ? redirection("ASK", importing.port())
                                           : allowing(*asked, at++))) {
            return;
          }
        }
      },
      FakeServer::Serving::at_once);
  owner_port = owner.port();
  const auto store = make_redis_store(fake_cluster({&owner}));
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("alice"));
  CHECK(seen == std::vector<std::string>{"EVALSHA", "EVALSHA"});
}

TEST_CASE("a node that has no slots any more is left, and its link serves the next node",
          "[fake][cluster]") {
  std::atomic<int> now{0};
  std::vector<std::uint16_t> ports(5);
  std::array<std::atomic<int>, 5> open{};
  const auto serve = [&](std::size_t self) -> FakeServer::Behaviour {
    return [&, self](Peer& peer, int) {
      Word at = 1;
      bool has_called = false;
      while (const auto asked = peer.read_behind_login()) {
        if (asked->at(0) == "CLUSTER") {
          if (!peer.send(
                  array({row(0, 16'383, loopback, ports.at(static_cast<std::size_t>(now)))})))
            break;
          continue;
        }
        if (!std::exchange(has_called, true)) ++open.at(self);
        const bool is_owner = static_cast<std::size_t>(now) == self;
        if (!peer.send(is_owner ? allowing(*asked, at++)
                                : redirection("MOVED", ports.at(static_cast<std::size_t>(now))))) {
          break;
        }
      }
      if (has_called) --open.at(self);
    };
  };
  std::vector<std::unique_ptr<FakeServer>> nodes;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    nodes.push_back(std::make_unique<FakeServer>(serve(i), FakeServer::Serving::at_once));
    ports[i] = nodes[i]->port();
  }
  const auto store = make_redis_store(fake_cluster({nodes[0].get()}));
  const Bucket bucket(*store, quota);
  for (int owner = 0; owner < 5; ++owner) {
    CAPTURE(owner);
    now = owner;
    CHECK(eventually([&] {
      CHECK_FALSE(bucket.error("alice"));
      return std::accumulate(open.begin(), open.end(), 0) == 1;
    }));
    CHECK(open.at(static_cast<std::size_t>(owner)) == 1);
  }
  CHECK(store->stats().nodes.size() <= 3);
}

TEST_CASE("the map is fetched before the first call, from whichever node is there",
          "[fake][cluster]") {
  const std::uint16_t closed = FakeServer([](Peer&, int) {}).port();
  FakeServer seed(node(no_map), FakeServer::Serving::at_once);
  RedisOptions options = fake_cluster({&seed});
  options.cluster.insert(options.cluster.begin(), 3, RedisAddress{"127.0.0.1", closed});
  const auto store = make_redis_store(options);
  CHECK(eventually([&] { return seed.connections() == 1; }));
}
