// The connection that listens for wake-ups, against a server that lies, is silent, or floods it.
// Threading: the subscriber runs on the test's thread, the fake server on its own.
#include "backends/redis/connection/subscriber.hpp"
#include "sluice/extend/subscription.hpp"

#include <map>
#include <mutex>
#include <set>

#include "tests/redis/fake/rig.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using sluice::redis_detail::PushReader;
using sluice::redis_detail::Subscriber;

namespace {

std::string push(std::string_view kind, std::string_view channel, std::string_view last) {
  return "*3\r\n" + bulk(kind) + bulk(channel) + std::string(last);
}

std::string confirmation(std::string_view channel) { return push("subscribe", channel, ":1\r\n"); }
std::string message(std::string_view channel) { return push("message", channel, bulk("")); }

/// Confirms every SUBSCRIBE and publishes to it.
void serve_ears(Peer& peer) {
  while (const auto asked = peer.read_behind_login()) {
    const std::string& channel = asked->at(1);
    const bool leaves = asked->at(0) == "UNSUBSCRIBE";
    if (!peer.send(leaves ? push("unsubscribe", channel, ":0\r\n")
                          : confirmation(channel) + message(channel))) {
      return;
    }
  }
}

RedisOptions ears_options(const FakeServer& server) {
  RedisOptions options = options_for(server);
  options.stall_timeout = 20s;
  options.reconnect_min = 1ms;
  options.reconnect_max = 10ms;
  return options;
}

/// A subscriber that watches a channel.
class Ears {
 public:
  explicit Ears(RedisOptions options) : options_(std::move(options)) { add("a"); }
  ~Ears() {
    subscriber_.stop();
    io_.poll();
  }

  void add(const std::string& channel) {
    auto& watched = subscriber_.channels();
    watches_.emplace(channel, watched.watchers().subscribe(channel, [this] { ++heard_; }));
    watched.add(channel);
    subscriber_.update();
  }
  void remove(const std::string& channel) {
    watches_.erase(channel);
    subscriber_.channels().remove(channel);
    subscriber_.update();
  }
  /// Changes that wait to be told to the server.
  [[nodiscard]] std::size_t pending() { return subscriber_.channels().take_changes().size(); }

  /// Runs until `condition` is true; false if it is not within 30 s.
  [[nodiscard]] bool until(const auto& condition) {
    return eventually([&] {
      io_.poll();
      return condition();
    });
  }
  [[nodiscard]] bool until_heard(std::size_t times = 1) {
    return until([&] { return heard_ >= times; });
  }
  void run_for(std::chrono::milliseconds span) { io_.run_for(span); }
  /// How many steps it takes for a while, behind those that can be made at once.
  [[nodiscard]] std::size_t steps_within(std::chrono::milliseconds span) {
    while (io_.poll() > 0) continue;
    return io_.run_for(span);
  }

  [[nodiscard]] std::size_t heard() const noexcept { return heard_; }
  [[nodiscard]] std::uint64_t confirmed() const noexcept { return subscriber_.confirmed(); }

 private:
  RedisOptions options_;
  boost::asio::io_context io_{1};
  std::size_t heard_ = 0;
  redis_detail::Names names_{io_, redis_detail::look_up_on_threads({})};
  Subscriber subscriber_{io_, options_, names_, 7};
  std::map<std::string, std::unique_ptr<Subscription>> watches_;
};

/// The first connection answers SUBSCRIBE with `lie`; the second is a good one.
void check_lie(std::string_view lie) {
  CAPTURE(std::string(lie.substr(0, 60)));
  FakeServer server([&](Peer& peer, int number) {
    if (number > 0) return serve_ears(peer);
    if (peer.read_behind_login() && peer.send(lie)) peer.wait_for_close();
  });
  Ears ears(ears_options(server));
  CHECK(ears.until_heard());
  CHECK(server.connections() == 2);
  CHECK(ears.confirmed() == 1);
  CHECK(ears.heard() == 1);
}

}  // namespace

TEST_CASE("a server that pushes nonsense is left, and a good one is heard", "[fake][watch]") {
  for (const char* lie :
       {"HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n", ":1\r\n", "*0\r\n*0\r\n",
        "-LOADING wait\r\n", "-NOAUTH Authentication required.\r\n", "-MOVED 1 h:1\r\n", "-\r\n"}) {
    check_lie(lie);
  }
  check_lie(allowing({"EVALSHA", "x", "1", "k", std::string(8, 'n')}, 1));
  std::string line(2'000'000, 'a');
  line[0] = '-';
  check_lie(line);
  check_lie("*3\r\n" + bulk(std::string(PushReader::max_bulk + 1, 'x')));
}

TEST_CASE("a stream of pushes that ends at any byte is followed by another", "[fake][watch]") {
  const std::string spoken = message("b");
  const std::string all = confirmation("a") + spoken;
  FakeServer server([&](Peer& peer, int number) {
    const auto cut = static_cast<std::size_t>(number);
    if (cut >= all.size()) return serve_ears(peer);
    if (!peer.read_behind_login()) return;
    for (const char c : all.substr(0, cut)) {
      if (!peer.send({&c, 1})) return;
    }
  });
  RedisOptions options = ears_options(server);
  options.reconnect_max = 1ms;
  Ears ears(options);
  // One message, and each confirmation behind another, which are those of these cuts and the last.
  const std::size_t wakes = 1 + spoken.size();
  CHECK(ears.until_heard(wakes));
  CHECK(server.connections() == static_cast<int>(all.size()) + 1);
  CHECK(ears.heard() == wakes);
}

TEST_CASE("who may have missed a wake-up between two connections is woken by the later one",
          "[fake][watch]") {
  std::atomic<int> ended{0};
  FakeServer server([&](Peer& peer, int number) {
    while (const auto asked = peer.read_behind_login()) {
      if (number != 1) peer.send(confirmation(asked->at(1)));
      if (number < 2) return;
    }
    ++ended;
  });
  Ears ears(ears_options(server));
  CHECK(ears.until_heard());
  CHECK(server.connections() == 3);
  ears.add("b");
  CHECK(ears.until([&] { return ears.confirmed() == 3; }));
  CHECK(ears.heard() == 1);  // a new name has missed nothing
  ears.remove("a");
  ears.remove("b");
  CHECK(ears.until([&] { return ended > 0; }));
  ears.add("c");
  CHECK(ears.until([&] { return ears.confirmed() == 4; }));
  CHECK(ears.heard() == 1);  // nor has one of a connection that was not lost
}

TEST_CASE("confirmations that nobody asked for count for nothing and do no harm", "[fake][watch]") {
  FakeServer server([](Peer& peer, int) {
    while (const auto asked = peer.read_behind_login()) {
      const std::string others = confirmation("b") + message("b") +
                                 push("unsubscribe", "b", ":0\r\n") +
                                 push("unsubscribe", "a", ":0\r\n") + message("");
      const std::string& channel = asked->at(1);
      peer.send(others + confirmation(channel) + others + message(channel));
    }
  });
  Ears ears(ears_options(server));
  CHECK(ears.until_heard());
  CHECK(ears.confirmed() == 1);
  ears.add("c");
  CHECK(ears.until_heard(2));
  CHECK(ears.confirmed() == 2);
  CHECK(server.connections() == 1);
}

TEST_CASE("confirmations that nobody asked for stand for no later answer", "[fake][watch]") {
  FakeServer server([](Peer& peer, int number) {
    if (number > 0) return serve_ears(peer);
    const auto asked = peer.read_behind_login();
    if (!asked) return;
    std::string confirmed = confirmation(asked->at(1));
    for (int i = 0; i < 100; ++i) confirmed += confirmation("c");  // of 100 probes, a second each
    peer.send(confirmed);
    if (peer.read_behind_login()) peer.wait_for_close();  // the next one is not answered
  });
  RedisOptions options = ears_options(server);
  options.stall_timeout = 500ms;
  Ears ears(options);
  REQUIRE(ears.until([&] { return ears.confirmed() == 1; }));
  ears.add("b");
  CHECK(ears.until_heard(4));  // on the next connection each is woken, and has a message
  CHECK(server.connections() == 2);
}

TEST_CASE("a server that confirms and closes is come back to by the back-off", "[fake][watch]") {
  FakeServer server([](Peer& peer, int) {
    if (const auto asked = peer.read_behind_login()) peer.send(confirmation(asked->at(1)));
  });
  RedisOptions options = ears_options(server);
  options.reconnect_max = 200ms;
  Ears ears(options);
  ears.run_for(1s);
  // The pauses are drawn from [0, 1 ms * 2^n), at most 200 ms: 8 that grow, and then 10 a second.
  // That 50 of them make less than a second is less likely than 2^-40.
  CHECK(server.connections() >= 3);
  CHECK(server.connections() <= 50);
  CHECK(ears.confirmed() >= 3);
}

TEST_CASE("a server that never confirms is waited for without a step, and left", "[fake][watch]") {
  std::atomic<bool> asked{false};
  const auto behave = [&](Peer& peer, int number) {
    if (number > 0) return serve_ears(peer);
    asked = peer.read_behind_login().has_value();
    peer.wait_for_close();
  };
  {
    FakeServer server(behave);
    Ears ears(ears_options(server));
    REQUIRE(ears.until([&] { return asked.load(); }));
    CHECK(ears.steps_within(300ms) == 0);
    CHECK(server.connections() == 1);
  }
  FakeServer server(behave);
  RedisOptions options = ears_options(server);
  options.stall_timeout = 50ms;
  Ears ears(options);
  CHECK(ears.until_heard());
  const int before = server.connections();
  CHECK(before >= 2);
  ears.run_for(200ms);  // it has confirmed: from now on it may be silent
  CHECK(server.connections() == before);
}

TEST_CASE("a server that is silent for good is left, and one that may not be probed is not",
          "[fake][watch]") {
  std::atomic<int> probes{0};
  const auto confirm_and = [&](bool answers) {
    return [&, answers](Peer& peer, int number) {
      if (number > 0) return serve_ears(peer);
      for (bool is_subscribed = false; const auto asked = peer.read();) {
        const bool is_probe = is_subscribed && asked->at(0) == "PING";
        if (is_probe) ++probes;
        if (is_probe && !answers) return peer.wait_for_close();
        const bool subscribes = asked->at(0) == "SUBSCRIBE";
        is_subscribed = is_subscribed || subscribes;
        if (!peer.send(is_probe     ? "-NOPERM no PING for you\r\n"
                       : subscribes ? confirmation(asked->at(1))
                                    : "+OK\r\n")) {
          return;
        }
      }
    };
  };
  {
    FakeServer server(confirm_and(true));
    Ears ears(ears_options(server));
    CHECK(ears.until([&] { return probes >= 2; }));
    CHECK(server.connections() == 1);
    CHECK(ears.confirmed() == 1);
  }
  FakeServer server(confirm_and(false));
  RedisOptions options = ears_options(server);
  options.stall_timeout = 50ms;
  Ears ears(options);
  CHECK(ears.until_heard());
  CHECK(server.connections() >= 2);
}

TEST_CASE("who may not subscribe does not ask again soon", "[fake][watch]") {
  const std::string denial =
      GENERATE("-NOPERM no channels for you\r\n", "-ERR unknown command 'SUBSCRIBE'\r\n");
  std::atomic<bool> left{false};
  FakeServer server([&](Peer& peer, int) {
    if (!peer.read_behind_login() || !peer.send(denial)) return;
    peer.wait_for_close();
    left = true;
  });
  Ears ears(ears_options(server));
  REQUIRE(ears.until([&] { return left.load(); }));
  CHECK(ears.steps_within(300ms) == 0);
  CHECK(server.connections() == 1);
  CHECK(ears.confirmed() == 0);
}

TEST_CASE("any number of channels is subscribed, also when the server reads late",
          "[fake][watch]") {
  const std::size_t channels = scaled(20'000, 12'000);
  const std::string name(100, 'x');  // together more than may wait behind what is not read
  FakeServer server([](Peer& peer, int number) {
    if (number > 0) return serve_ears(peer);
    if (peer.read_behind_login()) std::this_thread::sleep_for(20ms);
  });
  Ears ears(ears_options(server));
  for (std::size_t i = 1; i < channels; ++i) ears.add(name + std::to_string(i));
  CHECK(ears.until_heard(channels));
  CHECK(ears.confirmed() >= channels);
  CHECK(server.connections() >= 2);
  CHECK(server.connections() <= 4);
}

TEST_CASE("names that come and go during an outage pile up nowhere, and those that stay are heard",
          "[fake][watch]") {
  enum class Outage { refuses, hangs, closes };
  const auto outage = GENERATE(Outage::refuses, Outage::hangs, Outage::closes);
  CAPTURE(static_cast<int>(outage));
  std::atomic<bool> is_up{false};
  std::atomic<int> seen{0};
  std::mutex mutex;
  std::multiset<std::string> subscribed, left;
  FakeServer server([&](Peer& peer, int number) {
    ++seen;
    const bool was_well = outage == Outage::closes && number == 0;
    if (was_well) {
      if (const auto asked = peer.read_behind_login()) peer.send(confirmation(asked->at(1)));
      return;
    }
    if (outage == Outage::hangs) eventually([&] { return is_up.load(); });
    while (is_up) {
      const auto asked = peer.read_behind_login();
      if (!asked) return;
      const std::lock_guard lock(mutex);
      const bool leaves = asked->at(0) == "UNSUBSCRIBE";
      (leaves ? left : subscribed).insert(asked->at(1));
      peer.send(leaves ? push("unsubscribe", asked->at(1), ":0\r\n")
                       : confirmation(asked->at(1)) + message(asked->at(1)));
    }
  });
  Ears ears(ears_options(server));
  REQUIRE(ears.until([&] { return seen > (outage == Outage::closes ? 1 : 0); }));
  const std::uint64_t before = ears.confirmed();
  std::set<std::string> expected{"a"};
  const auto name = [](int i) { return "name" + std::to_string(i); };
  for (int i = 0; i < 3'000; ++i) {
    ears.add(name(i));
    if (i >= 100) ears.remove(name(i - 100));
    CHECK(ears.pending() == 0);
  }
  for (int i = 0; i < 50; ++i) ears.add(name(i));  // again
  for (int i = 2'900; i < 3'000; ++i) expected.insert(name(i));
  for (int i = 0; i < 50; ++i) expected.insert(name(i));
  is_up = true;
  CHECK(ears.until([&] { return ears.confirmed() - before >= expected.size(); }));
  CHECK(ears.until_heard(expected.size()));
  {
    const std::lock_guard lock(mutex);
    CHECK(std::set(subscribed.begin(), subscribed.end()) == expected);
    CHECK(subscribed.size() == expected.size());  // each once
    CHECK(left.empty());
  }
  // From now on changes are told as they come.
  const std::uint64_t behind = ears.confirmed();
  ears.remove(name(0));
  ears.add("late");
  CHECK(ears.until([&] { return ears.confirmed() > behind; }));
  const std::lock_guard lock(mutex);
  CHECK(subscribed.count("late") == 1);
  CHECK(left == std::multiset<std::string>{name(0)});
}

TEST_CASE("a server that confirms slowly is not left", "[fake][watch]") {
  FakeServer server([](Peer& peer, int) {
    while (const auto asked = peer.read_behind_login()) {
      std::this_thread::sleep_for(250ms);
      if (!peer.send(confirmation(asked->at(1)))) return;
    }
  });
  RedisOptions options = ears_options(server);
  options.stall_timeout = 1s;
  Ears ears(options);
  for (const char* name : {"b", "c", "d", "e", "f"}) ears.add(name);
  CHECK(ears.until([&] { return ears.confirmed() == 6; }));  // for longer than a stall in all
  CHECK(server.connections() == 1);
}
