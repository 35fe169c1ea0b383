// The proxy in front of a real server. Threading: the test's thread and the proxy's.
#include "tests/support/tcp_proxy.hpp"

#include "tests/catch.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"

using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view ping = "*1\r\n$4\r\nPING\r\n";
constexpr std::string_view pong = "+PONG\r\n";

struct Proxied {
  RedisServer server;
  TcpProxy proxy{server.port()};

  [[nodiscard]] RedisClient connect() const { return {"127.0.0.1", proxy.port()}; }
  [[nodiscard]] bool pings() const {
    try {
      return connect()({"PING"}).text == "PONG";
    } catch (const std::runtime_error&) {
      return false;
    }
  }
  /// How often the server has run INCR of `key`.
  [[nodiscard]] std::string count(std::string_view key) const {
    return RedisClient(server.unix_socket())({"GET", key}).text;
  }
};

}  // namespace

TEST_CASE("the proxy forwards, delays, splits and counts", "[support][redis]") {
  if (redis_left_out()) return;
  Proxied proxied;
  RedisClient client = proxied.connect();
  CHECK(client({"PING"}).text == "PONG");
  CHECK(proxied.proxy.bytes_up() == ping.size());
  while (proxied.proxy.bytes_down() == 0) {  // counted a moment after they were sent
  }
  CHECK(proxied.proxy.bytes_down() == pong.size());
  const std::string large(1'000'000, 'x');
  CHECK(client({"ECHO", large}).text == large);
  proxied.proxy.set({.delay = 20ms, .single_bytes = true});
  const auto before = std::chrono::steady_clock::now();
  CHECK(proxied.pings());
  CHECK(std::chrono::steady_clock::now() - before >= 40ms);
  CHECK(proxied.proxy.cuts() == 0);
}

TEST_CASE("the proxy cuts behind any byte of either direction", "[support][redis]") {
  if (redis_left_out()) return;
  Proxied proxied;
  for (std::size_t n = 0; n < ping.size(); ++n) {
    CAPTURE(n);
    proxied.proxy.set_once({.cut_up = n});
    CHECK_FALSE(proxied.pings());
  }
  for (std::size_t n = 0; n < pong.size(); ++n) {
    CAPTURE(n);
    proxied.proxy.set_once({.cut_down = n});
    CHECK_FALSE(proxied.pings());
  }
  CHECK(proxied.proxy.cuts() == ping.size() + pong.size());
  CHECK(proxied.pings());
  // What was cut behind its last byte has been executed.
  proxied.proxy.set_once({.cut_down = 1});
  CHECK_THROWS_AS(proxied.connect()({"INCR", "down"}), std::runtime_error);
  CHECK(proxied.count("down") == "1");
  proxied.proxy.set_once({.cut_up = 20});
  CHECK_THROWS_AS(proxied.connect()({"INCR", "up"}), std::runtime_error);
  CHECK(proxied.count("up").empty());
}
