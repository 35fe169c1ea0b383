// Look-ups that fail, hang, or answer late, and names with several addresses: the client is given a
// resolver of the test's. Threading: as calls_test.cpp; the resolver runs on threads that the
// client leaves to themselves.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <condition_variable>

#include "backends/redis/client.hpp"
#include "backends/redis/connection/connection.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake/rig.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;
using boost::asio::ip::tcp;
using redis_detail::Client;
using redis_detail::Endpoint;
using redis_detail::Found;

namespace {

Endpoint endpoint_of(std::uint16_t port) {
  return tcp::endpoint(boost::asio::ip::address_v4::loopback(), port);
}

/// Answers a look-up as it was told last; or lets it hang. It is kept by the look-ups themselves.
class Names {
 public:
  void answer(Found found) {
    const std::lock_guard lock(mutex_);
    found_ = std::move(found);
    hangs_ = false;
    changed_.notify_all();
  }
  void answer(const FakeServer& server) { answer(Found{{endpoint_of(server.port())}, {}}); }
  void hang() {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
  }

  /// Ends the look-ups under way; those that begin from now on hang.
  void answer_once(const FakeServer& server) {
    answer(server);
    const std::lock_guard lock(mutex_);
    hangs_ = true;
    ++answers_;
    changed_.notify_all();
  }

  Found look_up() {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.wait(lock, [this, before = answers_] { return !hangs_ || answers_ != before; });
    ++ended_;
    return found_;
  }
  [[nodiscard]] int begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  [[nodiscard]] int under_way() {
    const std::lock_guard lock(mutex_);
    return begun_ - ended_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Found found_;
  bool hangs_ = false;
  int answers_ = 0;  // of answer_once()
  int begun_ = 0;
  int ended_ = 0;
};

/// A client of one name.
struct Named {
  std::shared_ptr<Names> names = std::make_shared<Names>();
  Events events;
  RedisOptions options{};
  std::shared_ptr<Client> client{};
  std::uint64_t nonce = 0;

  Named() {
    options.host = "redis.test";
    options.reconnect_max = 20ms;
    options.on_event = events.listener();
  }
  Named(const Named&) = delete;
  ~Named() {
    if (client) client->stop();
    names->answer(Found{});  // no thread of the test's stays behind
  }
  void start() {
    client = std::make_shared<Client>(options, 1,
                                      [names = names](const std::string& host, std::uint16_t) {
                                        return host == "redis.test" ? names->look_up() : Found{};
                                      });
    client->start();
  }
  void ask(Asked& asked, Span within) {
    CallPtr call = make_call(asked, ++nonce, client->clock().now() + within);
    client->submit({&call, 1});
    asked.wait();
  }
  std::error_code ask(Span within) {
    Asked asked;
    ask(asked, within);
    return asked.error;
  }
  [[nodiscard]] bool has_failed(std::string_view part, std::size_t times = 1) const {
    return eventually(
        [&] { return events.count(RedisEvent::Kind::failed, RedisStep::look_up, part) >= times; });
  }
};

/// A client of a name with the addresses of `servers`, in this order.
struct Several : Named {
  explicit Several(
      std::initializer_list<const FakeServer*> servers, Span patience = 20s,
      const std::function<void()>& before_start = [] {}) {
    options.connect_timeout = patience;
    Found found;
    for (const FakeServer* server : servers) found.endpoints.push_back(endpoint_of(server->port()));
    names->answer(found);
    before_start();
    start();
  }
  std::error_code error(Span within = 20s) { return ask(within); }
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

TEST_CASE("a look-up that fails leaves the address that worked before", "[fake][look-up]") {
  std::atomic<bool> may_close{false};
  FakeServer server(at_first([&](Peer& peer) {
    serving(1)(peer, 0);
    eventually([&] { return may_close.load(); });
  }));
  Named named;
  named.names->answer(server);
  named.start();
  REQUIRE_FALSE(named.ask(20s));
  named.names->answer(Found{{}, "Temporary failure in name resolution"});
  may_close = true;  // not before: the next look-up is to fail
  CHECK(named.has_failed("look-up of redis.test:6379: Temporary failure in name resolution"));
  CHECK_FALSE(named.ask(20s));
  CHECK(server.connections() == 2);
}

TEST_CASE("a look-up that hangs does not keep the store from the address that worked before",
          "[fake][look-up]") {
  std::atomic<bool> may_close{false};
  FakeServer server([&](Peer& peer, int number) {
    serving(1)(peer, number);
    eventually([&] { return may_close.load(); });
  });
  Named named;
  named.options.connect_timeout = 1h;
  named.names->answer(server);
  named.start();
  REQUIRE_FALSE(named.ask(20s));
  named.names->hang();
  may_close = true;  // not before: the next look-up is to hang
  REQUIRE(eventually([&] { return named.names->under_way() == 1; }));
  const int begun = named.names->begun();
  // A call that meets the end of a connection is unknown.
  for (int i = 0; i < 5; ++i) REQUIRE(eventually([&] { return !named.ask(20s); }));
  CHECK(named.names->under_way() == 1);
  CHECK(named.names->begun() == begun);  // further ones would only pile up
  CHECK(named.has_failed("redis.test:6379: no answer"));
}

TEST_CASE("connect_timeout bounds the first look-up, and its late answer is used",
          "[fake][look-up]") {
  FakeServer server([](Peer& peer, int) { serve_well(peer); });
  Named named;
  named.options.connect_timeout = 30ms;
  named.names->hang();
  named.start();
  CHECK(named.has_failed("redis.test:6379: no answer within 30 ms"));
  CHECK(named.has_failed("redis.test:6379: no answer", 3));
  CHECK(named.ask(50ms) == Errc::not_connected);
  CHECK(named.names->begun() == 1);
  named.names->answer_once(server);  // the next one hangs again
  CHECK_FALSE(named.ask(20s));
}

TEST_CASE("the end of a store does not wait for a look-up", "[fake][look-up]") {
  Named named;
  named.options.connect_timeout = GENERATE(Span(1h), Span(10ms));
  named.names->hang();
  named.start();
  REQUIRE(eventually([&] { return named.names->under_way() == 1; }));
  if (named.options.connect_timeout == 10ms) REQUIRE(named.has_failed("no answer"));
  const std::weak_ptr<Client> left = named.client;
  named.client->stop();
  named.client.reset();
  CHECK(left.expired());
  CHECK(named.names->under_way() == 1);
  named.names->answer(Found{});
  CHECK(eventually([&] { return named.names->under_way() == 0; }));
}

TEST_CASE("each connection looks the name up anew, and goes where it leads by then",
          "[fake][look-up]") {
  FakeServer second([](Peer& peer, int) { serve_well(peer); });
  std::atomic<bool> moved{false};
  FakeServer leaving([&](Peer& peer, int number) {
    serving(1)(peer, number);
    eventually([&] { return moved.load(); });
  });
  Named named;
  named.names->answer(leaving);
  named.start();
  REQUIRE_FALSE(named.ask(20s));
  named.names->answer(second);
  moved = true;
  REQUIRE(eventually(
      [&] { return named.events.count(RedisEvent::Kind::lost, RedisStep::serve) == 1; }));
  CHECK_FALSE(named.ask(20s));
  CHECK(second.connections() == 1);
  CHECK(leaving.connections() == 1);
}

TEST_CASE("a connection may end between the end of its look-up and the news of it",
          "[fake][look-up][sentinel]") {
  Named named;
  named.options.sentinel = RedisSentinel{.master = "mymaster", .sentinels = {{"redis.test", 1}}};
  named.options.connect_timeout = 1ms;
  // The look-up is too late for the connection that asked, which ends behind this event.
  std::atomic<int> rounds{0};
  named.options.on_event = [&](const RedisEvent& event) {
    if (event.step != RedisStep::look_up) return;
    named.names->answer(Found{{}, "no name server"});
    eventually([&] { return named.names->under_way() == 0; });
    std::this_thread::sleep_for(1ms);  // of the thread, until it has told
    named.names->hang();
    ++rounds;
  };
  named.names->hang();
  named.start();
  CHECK(eventually([&] { return rounds >= 20; }));
}

TEST_CASE("a name is looked up once at a time, whoever asks, and all hear of it", "[look-up]") {
  boost::asio::io_context io;
  std::vector<std::function<void(Found)>> started;
  redis_detail::Names names(io, [&](const std::string&, std::uint16_t, auto done) {
    started.push_back(std::move(done));
  });
  std::vector<Found> found;
  const auto ask = [&](std::uint16_t port) {
    boost::asio::co_spawn(io, names.find("a.test", port, 20s),
                          [&](const std::exception_ptr&, Found each) { found.push_back(each); });
    io.poll();
  };
  const redis_detail::Endpoint endpoint{tcp::endpoint(boost::asio::ip::address_v4::loopback(), 1)};
  ask(1);
  ask(1);
  ask(2);  // another one
  REQUIRE(started.size() == 2);
  started[0]({{endpoint}, {}});
  io.poll();
  REQUIRE(found.size() == 2);
  for (const Found& each : found) {
    CHECK(each.error.empty());
    CHECK(each.endpoints.size() == 1);
  }
  ask(1);  // anew
  REQUIRE(started.size() == 3);
  started[2]({{}, "no name server"});
  io.poll();
  REQUIRE(found.size() == 3);
  CHECK(found[2].error == "no name server");
  CHECK(found[2].endpoints.size() == 1);
}

TEST_CASE("a look-up may end after those who asked, and after the store", "[look-up]") {
  std::function<void(Found)> done;
  {
    boost::asio::io_context io;
    {
      redis_detail::Names names(
          io, [&](const std::string&, std::uint16_t, auto each) { done = std::move(each); });
      boost::asio::co_spawn(io, names.find("a.test", 1, 1us), boost::asio::detached);
      io.run();
      done(Found{});
    }
    io.restart();
    io.run();
  }
  done(Found{});
}

TEST_CASE("a name without an address is a failure of the look-up", "[fake][look-up]") {
  Named named;
  named.start();
  CHECK(named.has_failed("look-up of redis.test:6379: the name has no address"));
  CHECK(named.ask(50ms) == Errc::not_connected);
}

TEST_CASE("a resolver without memory is a look-up that failed", "[fake][look-up]") {
  Events events;
  RedisOptions options;
  options.host = "redis.test";
  options.on_event = events.listener();
  const auto client = std::make_shared<Client>(
      options, 1, [](const std::string&, std::uint16_t) -> Found { throw std::bad_alloc(); });
  client->start();
  CHECK(eventually([&] {
    return events.count(RedisEvent::Kind::failed, RedisStep::look_up, "out of memory") > 0;
  }));
  client->stop();
}

TEST_CASE("the system's resolver finds localhost, and says what is wrong with other names",
          "[look-up]") {
  const Found found = redis_detail::resolve_by_system("localhost", 6379);
  REQUIRE_FALSE(found.endpoints.empty());
  for (const auto& endpoint : found.endpoints) {
    const std::string address = redis_detail::text_of(endpoint);
    CHECK((address == "127.0.0.1:6379" || address == "[::1]:6379"));
  }
  const Found nothing = redis_detail::resolve_by_system(std::string(300, 'x'), 6379);
  CHECK(nothing.endpoints.empty());
  CHECK_FALSE(nothing.error.empty());
}

TEST_CASE("an address that does not log the client in is passed over for the next one", "[fake]") {
  const auto mute = [](Peer& peer, int) { peer.wait_for_close(); };
  const auto closes = [](Peer&, int) {};
  const auto turns_away = [](Peer& peer, int) {
    if (peer.read()) peer.send("-NOAUTH Authentication required.\r\n");
  };
  const auto lies = [](Peer& peer, int) { peer.send("HTTP/1.1 400 Bad Request\r\n\r\n"); };
  const auto says = [](const std::string& word) {  // at login, that it cannot decide
    return [=](Peer& peer, int) {
      while (const auto command = peer.read()) {
        if (!peer.send(command->at(0) == "PING" ? "-" + word + " no\r\n" : "+OK\r\n")) return;
      }
    };
  };
  struct Address {
    FakeServer::Behaviour behaviour;
    int connections = 1;
  };
  // One that closes at HELLO is tried without it.
  for (const auto& [behaviour, connections] :
       {Address{mute}, Address{closes, 2}, Address{turns_away}, Address{lies},
        Address{says("MASTERDOWN")}, Address{says("LOADING")}}) {
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
  FakeServer master(serving(2));
  Several several({&replica, &master});
  // A call that meets the end of a connection is unknown.
  for (int i = 0; i < 6; ++i) REQUIRE(eventually([&] { return !several.error(); }));
  CHECK(replica.connections() == 1);
  CHECK(master.connections() >= 3);
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

TEST_CASE("a single address that is loading is connected to, and keeps its connection",
          "[fake][endpoints]") {
  std::atomic<bool> loads{true};
  FakeServer server([&](Peer& peer, int) {
    for (Word at = 1; const auto command = peer.read();) {
      const bool is_refused = loads && (is_call(*command) || command->at(0) == "PING");
      if (!peer.send(is_refused          ? "-LOADING wait\r\n"
                     : is_call(*command) ? allowing(*command, at++)
                                         : "+OK\r\n")) {
        return;
      }
    }
  });
  Several several({&server});
  for (int i = 0; i < 3; ++i) CHECK(eventually([&] { return several.error(1s) == Errc::loading; }));
  loads = false;
  CHECK_FALSE(several.error());
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
  const auto events = several.events.all();
  REQUIRE(events.size() == 3);
  CHECK(events[0].text() ==
        "login at 127.0.0.1:" + std::to_string(mute.port()) + ": no answer within 2000 ms");
  CHECK(events[1].text() == "connect to " + second + ": Connection refused");
  CHECK(events[2].kind == RedisEvent::Kind::connected);
  CHECK(events[2].address == "127.0.0.1:" + std::to_string(third.port()));
}

TEST_CASE("addresses that did not serve stand at the end, once each and the latest last",
          "[endpoints]") {
  boost::asio::io_context io;
  RedisOptions options;
  options.host = "several.test";
  options.connect_timeout = 20s;
  Found found{{endpoint_of(1), endpoint_of(2), endpoint_of(3), endpoint_of(2), endpoint_of(4)}, {}};
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
  endpoints.put_last(endpoint_of(2));
  endpoints.put_last(endpoint_of(1));
  CHECK(list() == Ports{3, 4, 2, 1});
  endpoints.put_last(endpoint_of(2));
  CHECK(list() == Ports{3, 4, 1, 2});
  endpoints.put_last(endpoint_of(9));  // of an earlier look-up
  CHECK(list() == Ports{3, 4, 1, 2});
  found.endpoints = {endpoint_of(2), endpoint_of(5)};
  CHECK(list() == Ports{5, 2});
  CHECK(endpoints.count() == 2);
  found.endpoints.push_back(endpoint_of(1));  // it is new, by now
  CHECK(list() == Ports{5, 1, 2});
}

TEST_CASE("an address that was not reached is not the first of the next connection",
          "[fake][endpoints]") {
  FakeServer closes([](Peer&, int) {});
  FakeServer serves_once(serving(1));
  Several several({&closes, &serves_once});
  // A call that meets the end of a connection is unknown.
  for (int i = 0; i < 4; ++i) REQUIRE(eventually([&] { return !several.error(); }));
  CHECK(closes.connections() == 2);  // with HELLO and without
}

// Under AddressSanitizer.
TEST_CASE("a timeout whose connection ends at the same time touches nothing of it") {
  for (int i = 0; i < 100; ++i) {
    boost::asio::io_context io;
    RedisOptions options;
    options.port = FakeServer([](Peer&, int) {}).port();
    options.connect_timeout = 1us;
    // The refusal and the timeout are found by the same look at what has happened.
    redis_detail::Names looked_up(io, redis_detail::look_up_on_threads({}));
    auto connection = std::make_unique<redis_detail::Connection>(io, options, looked_up, nullptr);
    bool ready = true;
    const auto connect = [&]() -> boost::asio::awaitable<void> {
      ready = co_await connection->connect();
      connection.reset();
    };
    boost::asio::co_spawn(io, connect(), boost::asio::detached);
    io.run();
    CHECK_FALSE(ready);
    CHECK(connection == nullptr);
  }
}
