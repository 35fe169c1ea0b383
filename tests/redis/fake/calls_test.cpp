// The store against a server that answers nonsense, too much, too little, or to the wrong call.
// Threading: the test's thread asks, the fake server runs on its own.
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/server.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

RedisOptions options_for(const FakeServer& server) {
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 5s;
  options.stall_timeout = 10s;
  return options;
}

std::unique_ptr<RedisStore> store_for(const FakeServer& server) {
  return make_redis_store(options_for(server));
}

const Quota quota = Quota::per_second(10);

/// The first connection answers the first call with `reply` and whatever follows; later ones serve.
void check_nonsense(std::string_view reply, bool closes = false) {
  CAPTURE(std::string(reply.substr(0, 40)));
  FakeServer server([&](Peer& peer, int number) {
    if (number > 0) return serve_well(peer, 500);
    if (!peer.read_call()) return;
    if (peer.send(reply) && !closes) peer.wait_for_close();
  });
  const auto store = store_for(server);
  const Bucket bucket(*store, quota);
  Asked first;
  bucket.ask(first, "a", 20s);
  CHECK(first.wait().error == Failure::unknown);
  CHECK_FALSE(first.decision.allowed);
  Asked second;
  bucket.ask(second, "a", 20s);
  CHECK_FALSE(second.wait().error);
  CHECK(second.decision.at >= to_time(500));
  if (!closes) CHECK(store->stats().protocol_errors == 1);
}

}  // namespace

TEST_CASE("a server that answers nonsense is left, and the call is unknown", "[fake]") {
  check_nonsense("HTTP/1.1 400 Bad Request\r\n\r\n");
  check_nonsense("\r\n");
  check_nonsense("+OK\r\n");
  check_nonsense(":1\r\n");
  check_nonsense("$-1\r\n");
  check_nonsense("$0\r\n\r\n");
  check_nonsense("$3\r\nabcde");
  check_nonsense("*1\r\n$1\r\na\r\n");
  check_nonsense("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
  check_nonsense("*-1\r\n");
  check_nonsense(">2\r\n+a\r\n+b\r\n");
  check_nonsense("+a\n+a\n+a\n");
  check_nonsense("$00000000000000000000000000000005\r\n");
}

TEST_CASE("a server that sends too much is left before it is buffered", "[fake]") {
  check_nonsense("$2147483647\r\n");
  check_nonsense("$16385\r\n");
  check_nonsense("*1000000000\r\n");
  std::string line(2'000'000, 'a');
  line[0] = '-';
  check_nonsense(line);
  check_nonsense(bulk(std::string(16'384, 'x')));
}

TEST_CASE("a reply with another nonce, or values that cannot be, admits nobody", "[fake]") {
  check_nonsense(bulk(payload(0, 1, {{1, 1, 0, 1}})));
  const std::vector<Verdict> verdicts{{2, 0, 0, 0}, {1, -1, 0, 0}, {1, 0, -5, 0}, {-10, 0, 0, 0}};
  for (const Verdict& verdict : verdicts) {
    FakeServer server([&](Peer& peer, int) {
      const auto call = peer.read_call();
      if (call && peer.send(bulk(payload(nonce_of(*call), 1, {verdict})))) peer.wait_for_close();
    });
    const auto store = store_for(server);
    CHECK(Bucket(*store, quota).error("a") == Errc::protocol_error);
  }
}

TEST_CASE("a server that closes in the middle of a reply leaves the call unknown", "[fake]") {
  check_nonsense("$48\r\nabc", true);
  check_nonsense("-NOSCR", true);
  check_nonsense("", true);
}

TEST_CASE("a call whose reply was swallowed is not asked again", "[fake]") {
  std::atomic<int> calls{0};
  const bool reset = GENERATE(false, true);
  FakeServer server([&](Peer& peer, int) {
    if (!peer.read_call()) return;
    ++calls;
    if (reset) peer.reset_on_close();
  });
  const auto store = store_for(server);
  const Bucket bucket(*store, quota);
  CHECK(bucket.error("a") == Errc::unknown);
  CHECK(calls == 1);
  CHECK(bucket.error("a") == Errc::unknown);
  CHECK(calls == 2);
}

TEST_CASE("replies that come byte by byte are replies", "[fake]") {
  FakeServer server([](Peer& peer, int) {
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      for (const char c : allowing(*call, at)) {
        if (!peer.send({&c, 1})) return;
      }
    }
  });
  const auto store = store_for(server);
  const Bucket bucket(*store, quota);
  Crowd crowd(20);
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 20s);
  CHECK(crowd.wait());
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    CHECK(crowd[i].decision.at == to_time(static_cast<Word>(i) + 1));
  }
  CHECK(store->stats().connections == 1);
}

TEST_CASE("a reply that nobody asked for never reaches the next call", "[fake]") {
  FakeServer server([](Peer& peer, int number) {
    if (number > 0) return serve_well(peer, 500);
    const auto call = peer.read_call();
    if (!call) return;
    const std::string reply = allowing(*call, 1);
    if (peer.send(reply + reply + reply)) peer.wait_for_close();
  });
  const auto store = store_for(server);
  const Bucket bucket(*store, quota);
  Asked first;
  bucket.ask(first, "a", 20s);
  CHECK_FALSE(first.wait().error);
  CHECK(first.decision.at == to_time(1));
  REQUIRE(eventually([&] { return store->stats().protocol_errors == 1; }));
  Asked second;
  bucket.ask(second, "a", 20s);
  CHECK_FALSE(second.wait().error);
  CHECK(second.decision.at >= to_time(500));
}

TEST_CASE("replies in the wrong order decide nothing", "[fake]") {
  FakeServer server([](Peer& peer, int) {
    const auto a = peer.read_call();
    const auto b = a ? peer.read_call() : a;
    if (b && peer.send(allowing(*b, 2) + allowing(*a, 1))) peer.wait_for_close();
  });
  const auto store = store_for(server);
  const Bucket bucket(*store, quota);
  Crowd crowd(2);
  bucket.ask(crowd[0], "a", 20s);
  bucket.ask(crowd[1], "b", 20s);
  CHECK(crowd.wait());
  CHECK(crowd[0].error == Errc::protocol_error);
  CHECK(crowd[1].error == Errc::unknown);
}

TEST_CASE("a late reply is thrown away, and the connection goes on", "[fake]") {
  std::atomic<bool> timed_out{false};
  FakeServer server([&](Peer& peer, int) {
    const auto first = peer.read_call();  // behind it the store is connected
    if (!first || !peer.send(allowing(*first, 1))) return;
    const auto slow = peer.read_call();
    if (!slow || !eventually([&] { return timed_out.load(); })) return;
    peer.send(allowing(*slow, 1));
    serve_well(peer, 500);
  });
  const auto store = store_for(server);
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("a", 20s));
  CHECK(bucket.error("a", 1s) == Failure::unknown);
  Asked next;
  bucket.ask(next, "a", 20s);
  timed_out = true;
  CHECK_FALSE(next.wait().error);
  CHECK(next.decision.at == to_time(500));
  CHECK(store->stats().late_replies == 1);
  CHECK(store->stats().connections == 1);
}

TEST_CASE("a server that answers nothing is given up, also by calls without an end", "[fake]") {
  FakeServer server([](Peer& peer, int number) {
    if (number > 0) return serve_well(peer, 500);
    if (peer.read_call()) peer.wait_for_close();
  });
  RedisOptions options = options_for(server);
  options.stall_timeout = 50ms;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK(bucket.error("a", Span::max()) == Errc::unknown);
  CHECK_FALSE(bucket.error("a", Span::max()));
  CHECK(store->stats().connections == 2);
}

TEST_CASE("every error word of a server that does not pass ends its own call and no other",
          "[fake]") {
  const std::vector<std::pair<std::string, Errc>> words{
      {"MOVED 1 h:1", Errc::moved},       {"ASK 1 h:1", Errc::ask},
      {"CROSSSLOT x", Errc::cross_slot},  {"NOREPLICAS x", Errc::no_replicas},
      {"OOM x", Errc::out_of_memory},     {"BUSY x", Errc::busy},
      {"MISCONF x", Errc::misconfigured}, {"NOAUTH x", Errc::no_auth},
      {"NOPERM x", Errc::no_permission},  {"WRONGTYPE x", Errc::wrong_type},
      {"ERR x", Errc::server_error}};
  FakeServer server([&](Peer& peer, int) {
    for (std::size_t i = 0; const auto call = peer.read_call(); ++i) {
      const bool ok = i % 2 == 1 || i / 2 >= words.size();
      const std::string error = "-" + words[ok ? 0 : i / 2].first + "\r\n";
      if (!peer.send(ok ? allowing(*call, static_cast<Word>(i)) : error)) return;
    }
  });
  const auto store = store_for(server);
  const Bucket bucket(*store, quota);
  Crowd crowd(2 * words.size());
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 20s);
  CHECK(crowd.wait());
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    CAPTURE(i);
    if (i % 2 == 0) {
      CHECK(crowd[i].error == words[i / 2].second);
    } else {
      CHECK_FALSE(crowd[i].error);
      CHECK(crowd[i].decision.at == to_time(static_cast<Word>(i)));
    }
  }
  CHECK(store->stats().connections == 1);
}

TEST_CASE("a server that stops reading leaves what it did not take certainly not executed",
          "[fake]") {
  std::atomic<bool> over{false};
  FakeServer server([&](Peer& peer, int) {
    if (peer.read_call()) eventually([&] { return over.load(); });
  });
  RedisOptions options = options_for(server);
  options.max_in_flight = 100'000;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  Crowd crowd(40'000);
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 500ms);
  CHECK(crowd.wait());
  const auto with = [&](Errc code) {
    return crowd.count([=](const Asked& call) { return call.error == code; });
  };
  CHECK(with(Errc::unknown) > 0);
  CHECK(with(Errc::timed_out) > 0);
  CHECK(with(Errc::unknown) + with(Errc::timed_out) == crowd.size());
  over = true;
}

TEST_CASE("a server that reads late is sent everything, in order", "[fake]") {
  std::atomic<bool> reads{false};
  FakeServer server([&](Peer& peer, int) {
    const auto first = peer.read_call();
    if (!first || !eventually([&] { return reads.load(); })) return;
    if (peer.send(allowing(*first, 1))) serve_well(peer, 2);
  });
  RedisOptions options = options_for(server);
  options.max_in_flight = 100'000;
  options.stall_timeout = 60s;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  Crowd crowd(40'000);  // more than a socket takes
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 60s);
  reads = true;
  CHECK(crowd.wait());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    const bool right = !crowd[i].error && crowd[i].decision.at == to_time(static_cast<Word>(i) + 1);
    wrong += right ? 0U : 1U;
  }
  CHECK(wrong == 0);
  CHECK(store->stats().connections == 1);
}
