// The store against nodes of a cluster that lie, and Sentinels that help nobody or replace the
// master. Threading: the fixtures'.
#include <array>

#include "backends/redis/protocol/hash_slot.hpp"
#include "sluice/extend/subscription.hpp"
#include "tests/redis/fake/cluster.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10).burst(5);

std::size_t maps_in(const Events& events) {
  return events.count(RedisEvent::Kind::map_changed, RedisStep::discover);
}
}  // namespace

TEST_CASE("a call that is sent on for ever, or to nonsense, fails, and was not executed",
          "[fake][cluster]") {
  std::uint16_t port = 0;
  std::atomic<int> calls{0};
  for (const std::string& words :
       {std::string("MOVED 1 127.0.0.1:PORT"), std::string("ASK 1 127.0.0.1:PORT"),
        std::string("MOVED"), std::string("MOVED 16384 127.0.0.1:1"),
        std::string("MOVED 1 127.0.0.1:0"), "MOVED 1 " + std::string(300, 'h') + ":1",
        std::string("ASK"), std::string("ASK 1 ?:1")}) {
    CAPTURE(words);
    const bool is_to_itself = words.ends_with("PORT");
    calls = 0;
    FakeServer server(node(no_map,
                           [&](const Command&) {
                             ++calls;
                             if (!is_to_itself) return "-" + words + "\r\n";
                             return redirection(words.substr(0, words.find(' ')), port);
                           }),
                      FakeServer::Serving::at_once);
    port = server.port();
    const auto store = make_redis_store(fake_cluster({&server}));
    const std::error_code error = Bucket(*store, quota).error("alice");
    CHECK(error == (words.starts_with("ASK") ? Errc::ask : Errc::moved));
    CHECK(error == Failure::not_executed);
    CHECK(calls == (is_to_itself ? 6 : 1));
  }
}

TEST_CASE("a map that cannot be is not followed, and the nodes go on", "[fake][cluster]") {
  std::vector<std::string> many;
  for (int i = 0; i < 100'000; ++i) many.push_back(row(1, 1, loopback, 1));
  const std::string full = row(0, 16'383, loopback, 1);
  for (const std::string& map :
       {array({row(0, 100, loopback, 1), row(100, 16'383, loopback, 2)}),  // overlap
        array(many), std::string("*1000000000\r\n"), std::string("*-1\r\n"), std::string("+OK\r\n"),
        std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), full + full,
        std::string("-ERR This instance has cluster support disabled\r\n"), array({number(1)})}) {
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
    FakeServer first(node(map, [](const Command&) { return std::string("-CLUSTERDOWN no\r\n"); }),
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
  FakeServer first(
      node(no_map, [&](const Command&) { return redirection("MOVED", owner.port(), ""); }),
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
  FakeServer importing(
      node(no_map, [&](const Command&) { return redirection("MOVED", owner_port); }),
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

TEST_CASE("a node whose last slot is moved by MOVED is left with the next map", "[fake][cluster]") {
  const auto slot = redis_detail::hash_slot("{alice}");
  std::atomic<bool> is_moved{false};
  std::atomic<int> left{0};
  std::uint16_t owner_port = 0;
  std::uint16_t last_port = 0;
  const auto map = [&] {
    return array({row(0, slot - 1, loopback, owner_port),
                  row(slot, slot, loopback, is_moved ? owner_port : last_port),
                  row(slot + 1, 16'383, loopback, owner_port)});
  };
  FakeServer last(node(
                      map,
                      [&](const Command& asked) {
                        return is_moved ? redirection("MOVED", owner_port) : allowing(asked, 1);
                      },
                      [&] { ++left; }),
                  FakeServer::Serving::at_once);
  FakeServer owner(node(map), FakeServer::Serving::at_once);
  owner_port = owner.port();
  last_port = last.port();
  Events events;
  RedisOptions options = fake_cluster({&owner});
  options.on_event = events.listener();
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  REQUIRE(eventually([&] { return maps_in(events) == 1; }));
  CHECK_FALSE(bucket.error("alice"));
  is_moved = true;
  CHECK_FALSE(bucket.error("alice"));
  CHECK(eventually([&] { return left == 1 && maps_in(events) == 2; }));
}

TEST_CASE("a link that has calls under way is given no other node", "[fake][cluster]") {
  // The slots of the first two nodes move to a third, while the second has not answered a call. The
  // third sends a call on to a fourth.
  const auto alice = redis_detail::hash_slot("{alice}");
  REQUIRE(alice < redis_detail::hash_slot("{bob}"));
  std::atomic<bool> is_moved{false};
  std::atomic<bool> sends_on{false};
  std::atomic<bool> is_over{false};
  std::atomic<int> seen{0};
  std::array<std::uint16_t, 3> ports{};
  const auto map = [&] {
    return is_moved ? array({row(0, 16'383, loopback, ports[2])})
                    : array({row(0, alice, loopback, ports[0]),
                             row(alice + 1, 16'383, loopback, ports[1])});
  };
  FakeServer fourth(node(no_map), FakeServer::Serving::at_once);
  FakeServer third(node(map,
                        [&](const Command& asked) {
                          return sends_on ? redirection("MOVED", fourth.port())
                                          : allowing(asked, 1);
                        }),
                   FakeServer::Serving::at_once);
  FakeServer second(node(map,
                         [&](const Command& asked) {
                           if (++seen == 1) eventually([&] { return is_over.load(); });
                           return allowing(asked, 1);
                         }),
                    FakeServer::Serving::at_once);
  FakeServer first(node(map, [&](const Command&) { return redirection("MOVED", ports[2]); }),
                   FakeServer::Serving::at_once);
  ports = {first.port(), second.port(), third.port()};
  Events events;
  RedisOptions options = fake_cluster({&first});
  options.on_event = events.listener();
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  REQUIRE(eventually([&] { return maps_in(events) == 1; }));
  Asked pending;
  bucket.ask(pending, "bob", 20s);
  REQUIRE(eventually([&] { return seen == 1; }));
  is_moved = true;
  CHECK_FALSE(bucket.error("alice"));
  REQUIRE(eventually([&] { return maps_in(events) == 2; }));
  sends_on = true;
  CHECK_FALSE(bucket.error("alice"));
  CHECK(fourth.connections() == 1);
  is_over = true;
  pending.wait();
  CHECK(seen == 1);
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

TEST_CASE("a Sentinel that names nobody or nonsense gives a reason", "[fake][sentinel]") {
  for (const std::string& reply :
       {std::string("*-1\r\n"), array({bulk("h"), bulk("0")}), std::string("-IDONTKNOW\r\n"),
        std::string("+OK\r\n"), std::string("*1000000000\r\n"),
        "*2\r\n$1000000\r\n" + std::string(1'000'000, 'h')}) {
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

TEST_CASE("a Sentinel that is mute behind the login is passed over", "[fake][sentinel]") {
  FakeServer mute(
      [](Peer& peer, int) {
        if (peer.read_behind_login()) peer.wait_for_close();
      },
      FakeServer::Serving::at_once);
  FakeServer master(node(no_map,
                         [](const Command& asked) {
                           return is_call(asked) ? allowing(asked, 1) : array({bulk("master")});
                         }),
                    FakeServer::Serving::at_once);
  FakeServer sentinel(node(no_map,
                           [&](const Command& asked) {
                             return asked.at(1) == "GET-MASTER-ADDR-BY-NAME"
                                        ? array({loopback, bulk(std::to_string(master.port()))})
                                        : array({});
                           }),
                      FakeServer::Serving::at_once);
  RedisOptions options = fake_sentinel(mute);
  options.sentinel->sentinels.push_back({"127.0.0.1", sentinel.port()});
  const auto store = make_redis_store(options);
  CHECK_FALSE(Bucket(*store, quota).error("alice"));
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

TEST_CASE("wake-ups are listened for at the next master, also while the old one goes on",
          "[fake][sentinel]") {
  std::atomic<bool> is_heard{false};  // a channel is subscribed at the old master
  std::atomic<bool> is_moved{false};
  const auto master = [](std::atomic<bool>& is_subscribed) -> FakeServer::Behaviour {
    return [&](Peer& peer, int) {
      while (const auto asked = peer.read_behind_login()) {
        if (asked->at(0) != "SUBSCRIBE") {
          if (!peer.send(array({bulk("master")}))) return;
          continue;
        }
        peer.send(array({bulk("subscribe"), bulk(asked->at(1)), number(1)}));
        is_subscribed = true;
        while (peer.read() && peer.send(array({bulk("pong"), bulk("")}))) continue;
        return;
      }
    };
  };
  FakeServer before(master(is_heard), FakeServer::Serving::at_once);
  FakeServer after(master(is_moved), FakeServer::Serving::at_once);
  FakeServer sentinel(
      [&](Peer& peer, int) {
        while (const auto asked = peer.read_behind_login()) {
          std::string reply = array({});  // it knows no other Sentinel
          if (asked->at(0) == "SUBSCRIBE") {
            peer.send(array({bulk("subscribe"), bulk("+switch-master"), number(1)}));
            eventually([&] { return is_heard.load(); });
            reply = array({bulk("message"), bulk("+switch-master"), bulk("mymaster")});
          } else if (asked->at(1) == "GET-MASTER-ADDR-BY-NAME") {
            reply = array({loopback, bulk(std::to_string((is_heard ? after : before).port()))});
          }
          if (!peer.send(reply)) break;
        }
      },
      FakeServer::Serving::at_once);
  const auto store = make_redis_store(fake_sentinel(sentinel));
  const auto watch = store->subscribe(Key{"a", "jobs"}, [] {});
  CHECK(eventually([&] { return is_moved.load(); }));
}
