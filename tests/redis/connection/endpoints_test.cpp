// A name with several addresses: the client is given the addresses that a look-up would find.
// Threading: as calls_test.cpp.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "backends/redis/client.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::Client;
using redis_detail::Endpoint;
using redis_detail::Found;
using redis_detail::Resolve;

namespace {

Endpoint endpoint_of(const FakeServer& server) {
  using boost::asio::ip::tcp;
  return tcp::endpoint(boost::asio::ip::address_v4::loopback(), server.port());
}

/// A client that knows `servers`, in this order. `patience`: its connect_timeout.
class Several {
 public:
  explicit Several(
      std::initializer_list<const FakeServer*> servers, Span patience = 20s,
      const std::function<void()>& before_start = [] {}) {
    RedisOptions options;
    options.on_event = events_.listener();
    options.host = "several.test";
    options.connect_timeout = patience;
    options.reconnect_max = 20ms;
    Found found;
    for (const FakeServer* server : servers) found.endpoints.push_back(endpoint_of(*server));
    const Resolve resolve = [found](const std::string&, std::uint16_t) { return found; };
    before_start();
    client_ = std::make_shared<Client>(options, 1, resolve);
    client_->start();
  }
  Several(const Several&) = delete;
  ~Several() { client_->stop(); }

  void ask(Asked& asked, Span within) {
    CallPtr call = make_call(asked, ++nonce_, client_->clock().now() + within);
    client_->submit({&call, 1});
    asked.wait();
  }
  std::error_code error(Span within = 20s) {
    Asked asked;
    ask(asked, within);
    return asked.error;
  }

  [[nodiscard]] const Events& events() const { return events_; }

 private:
  Events events_;
  std::shared_ptr<Client> client_;
  std::uint64_t nonce_ = 0;
};

/// Answers calls with `word`, but the login as a server that is well.
FakeServer::Behaviour refusing(std::string word) {
  return [word = std::move(word)](Peer& peer, int) {
    while (peer.read_call()) {
      if (!peer.send("-" + word + " no\r\n")) return;
    }
  };
}

}  // namespace

TEST_CASE("an address that does not log the client in is passed over for the next one", "[fake]") {
  const auto mute = [](Peer& peer, int) { peer.wait_for_close(); };
  const auto closes = [](Peer&, int) {};
  const auto turns_away = [](Peer& peer, int) {
    if (peer.read()) peer.send("-NOAUTH Authentication required.\r\n");
  };
  const auto lies = [](Peer& peer, int) { peer.send("HTTP/1.1 400 Bad Request\r\n\r\n"); };
  struct Address {
    FakeServer::Behaviour behaviour;
    int connections = 1;
  };
  // One that closes at HELLO is tried without it.
  for (const auto& [behaviour, connections] :
       {Address{mute}, Address{closes, 2}, Address{turns_away}, Address{lies}}) {
    FakeServer first(behaviour);
    FakeServer second(behaviour);
    FakeServer third([](Peer& peer, int) { serve_well(peer); });
    Several several({&first, &second, &third}, 1s);
    Asked asked;
    several.ask(asked, 20s);
    CHECK(was_decided(asked, 1));
    CHECK(first.connections() == connections);
    CHECK(second.connections() == connections);
  }
}

TEST_CASE("if no address serves, the call quotes the last server that said why", "[fake]") {
  FakeServer first([](Peer& peer, int) {
    while (const auto command = peer.read()) peer.send("-NOAUTH Authentication required.\r\n");
  });
  FakeServer second([](Peer&, int) {});
  Several several({&first, &second});
  CHECK(eventually([&] { return several.error(300ms) == Errc::no_auth; }));
}

TEST_CASE("an address whose server is no master is left for the next one, and for good",
          "[fake][endpoints]") {
  const std::string word = GENERATE("READONLY", "MASTERDOWN", "LOADING");
  CAPTURE(word);
  FakeServer replica(refusing(word));
  FakeServer master([](Peer& peer, int) {  // each connection ends with its second call
    for (Word at = 1; at <= 2; ++at) {
      const auto call = peer.read_call();
      if (!call || !peer.send(allowing(*call, at))) return;
    }
  });
  Several several({&replica, &master});
  // A call that meets the end of a connection is unknown.
  for (int i = 0; i < 6; ++i) REQUIRE(eventually([&] { return !several.error(); }));
  CHECK(replica.connections() == 1);
  CHECK(master.connections() >= 3);
}

TEST_CASE("an address whose server says at login that it cannot decide is passed over",
          "[fake][endpoints]") {
  const std::string word = GENERATE("MASTERDOWN", "LOADING");
  FakeServer replica([=](Peer& peer, int) {
    while (const auto command = peer.read()) {
      const bool is_ping = command->at(0) == "PING";
      if (!peer.send(is_ping ? "-" + word + " no\r\n" : "+OK\r\n")) return;
    }
  });
  FakeServer master([](Peer& peer, int) { serve_well(peer); });
  Several several({&replica, &master});
  CHECK_FALSE(several.error());
  CHECK(replica.connections() == 1);
}

TEST_CASE("the store follows its master through failovers", "[fake][endpoints]") {
  std::atomic<int> master{0};
  const auto member = [&](int self) {
    return [&, self](Peer& peer, int) {
      while (const auto call = peer.read_call()) {
        const bool decides = master == self;
        if (!peer.send(decides ? allowing(*call, self + 1) : "-READONLY no\r\n")) return;
      }
    };
  };
  FakeServer a(member(0));
  FakeServer b(member(1));
  FakeServer c(member(2));
  Several several({&a, &b, &c});
  for (const int next : {2, 0, 1, 0, 2, 1}) {
    master = next;
    CHECK(eventually([&] {
      Asked asked;
      several.ask(asked, 20s);
      return !asked.error && asked.decision.at == to_time(next + 1);
    }));
  }
}

TEST_CASE("a server that answers nothing, or nonsense, is left for the next address",
          "[fake][endpoints]") {
  const bool is_mute = GENERATE(true, false);
  FakeServer first([=](Peer& peer, int) {
    if (!peer.read_call()) return;
    if (!is_mute) peer.send("nonsense");
    peer.wait_for_close();
  });
  FakeServer second([](Peer& peer, int) { serve_well(peer); });
  Several several({&first, &second});
  CHECK(several.error() == Failure::unknown);
  CHECK_FALSE(several.error());
  CHECK(first.connections() == 1);
}

TEST_CASE("if every address is loading, calls say so by their deadline", "[fake][endpoints]") {
  const auto loads = [](Peer& peer, int) {
    while (peer.read()) {
      if (!peer.send("-LOADING wait\r\n")) return;
    }
  };
  FakeServer first(loads);
  FakeServer second(loads);
  Several several({&first, &second});
  REQUIRE(eventually([&] { return first.connections() + second.connections() > 2; }));
  CHECK(eventually([&] { return several.error(200ms) == Errc::loading; }));
}

TEST_CASE("a single address that is loading keeps its connection", "[fake][endpoints]") {
  FakeServer server(refusing("LOADING"));
  Several several({&server});
  for (int i = 0; i < 3; ++i) CHECK(eventually([&] { return several.error(1s) == Errc::loading; }));
  CHECK(server.connections() == 1);
}

TEST_CASE("each address is told with its own cause, in the order of the attempts",
          "[fake][endpoints][reason]") {
  FakeServer mute([](Peer& peer, int) { peer.wait_for_close(); });
  auto gone = std::make_unique<FakeServer>([](Peer&, int) {});
  const std::string second = "127.0.0.1:" + std::to_string(gone->port());
  FakeServer third([](Peer& peer, int) { serve_well(peer); });
  Several several({&mute, gone.get(), &third}, 2s, [&] { gone.reset(); });
  CHECK_FALSE(several.error());
  const auto events = several.events().all();
  REQUIRE(events.size() == 3);
  CHECK(events[0].text() ==
        "login at 127.0.0.1:" + std::to_string(mute.port()) + ": no answer within 2000 ms");
  CHECK(events[1].text() == "connect to " + second + ": Connection refused");
  CHECK(events[2].kind == RedisEvent::Kind::connected);
  CHECK(events[2].address == "127.0.0.1:" + std::to_string(third.port()));
}

TEST_CASE("addresses that did not serve stand at the end, once each and the latest last",
          "[endpoints]") {
  using boost::asio::ip::tcp;
  const auto address = [](std::uint16_t port) {
    return Endpoint(tcp::endpoint(boost::asio::ip::address_v4::loopback(), port));
  };
  boost::asio::io_context io;
  RedisOptions options;
  options.host = "several.test";
  options.connect_timeout = 20s;
  Found found{{address(1), address(2), address(3), address(4)}, {}};
  redis_detail::Names names(
      io, [&](const std::string&, std::uint16_t, const auto& done) { done(found); });
  redis_detail::Endpoints endpoints(options, names);
  const auto list = [&] {
    std::vector<int> ports;
    boost::asio::co_spawn(io, endpoints.list(),
                          [&](const std::exception_ptr&, const std::vector<Endpoint>& all) {
                            for (const Endpoint& each : all) {
                              const std::string text = redis_detail::text_of(each);
                              ports.push_back(std::stoi(text.substr(text.find(':') + 1)));
                            }
                          });
    io.restart();
    io.run();
    return ports;
  };
  using Ports = std::vector<int>;
  CHECK(list() == Ports{1, 2, 3, 4});
  endpoints.put_last(address(2));
  endpoints.put_last(address(1));
  CHECK(list() == Ports{3, 4, 2, 1});
  endpoints.put_last(address(2));
  CHECK(list() == Ports{3, 4, 1, 2});
  endpoints.put_last(address(9));  // of an earlier look-up
  CHECK(list() == Ports{3, 4, 1, 2});
  found.endpoints = {address(2), address(5)};
  CHECK(list() == Ports{5, 2});
  CHECK(endpoints.count() == 2);
  found.endpoints.push_back(address(1));  // it is new, by now
  CHECK(list() == Ports{5, 1, 2});
}

TEST_CASE("an address that was not reached is not the first of the next connection",
          "[fake][endpoints]") {
  FakeServer closes([](Peer&, int) {});
  FakeServer serves_once([](Peer& peer, int) {
    const auto call = peer.read_call();
    if (call) peer.send(allowing(*call, 1));
  });
  Several several({&closes, &serves_once});
  // A call that meets the end of a connection is unknown.
  for (int i = 0; i < 4; ++i) REQUIRE(eventually([&] { return !several.error(); }));
  CHECK(closes.connections() == 2);  // with HELLO and without
}

TEST_CASE("a single address that is loading at login is connected to", "[fake][endpoints]") {
  FakeServer server([](Peer& peer, int) {
    for (Word at = 1; const auto command = peer.read();) {
      const bool is_ping = command->at(0) == "PING";
      const std::string reply = is_call(*command) ? allowing(*command, at++)
                                : is_ping         ? "-LOADING wait\r\n"
                                                  : "+OK\r\n";
      if (!peer.send(reply)) return;
    }
  });
  Several several({&server});
  CHECK_FALSE(several.error());
}
