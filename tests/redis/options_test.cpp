// Options out of range, and secrets. Threading: single-threaded.
#include <functional>
#include <type_traits>

#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

std::string complaint(const std::function<void(RedisOptions&)>& change) {
  RedisOptions options;
  change(options);
  try {
    const auto store = make_redis_store(options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

template <class T>
concept Printable = requires(std::ostream& out, const T& value) {
  out << value;
};

}  // namespace

TEST_CASE("an option out of range is refused with its name and its range", "[options]") {
  CHECK(complaint([](auto& o) { o.host = ""; }) == "RedisOptions: host must not be empty");
  CHECK(complaint([](auto& o) { o.port = 0; }) == "RedisOptions: port must be 1 to 65535, got 0");
  CHECK(complaint([](auto& o) { o.unix_socket = std::string(108, 'x'); }) ==
        "RedisOptions: unix_socket must have at most 107 bytes, got 108");
  CHECK(complaint([](auto& o) { o.username.assign(1, 'u'); }) ==
        "RedisOptions: a username needs a password");
  CHECK(complaint([](auto& o) {
          o.password = "x";
          o.credentials = [] { return RedisCredentials{}; };
        }) == "RedisOptions: credentials and a password exclude each other");
  CHECK(complaint([](auto& o) { o.max_in_flight = 0; }) ==
        "RedisOptions: max_in_flight must be 1 to 1048576, got 0");
  CHECK(complaint([](auto& o) { o.max_in_flight = (1U << 20) + 1; }) ==
        "RedisOptions: max_in_flight must be 1 to 1048576, got 1048577");
  CHECK(complaint([](auto& o) { o.call_timeout = 0us; }) ==
        "RedisOptions: call_timeout must be 1 us to 24 h, got 0 us");
  CHECK(complaint([](auto& o) { o.connect_timeout = -1us; }).find("connect_timeout") !=
        std::string::npos);
  CHECK(complaint([](auto& o) { o.stall_timeout = Span::max(); }).find("stall_timeout") !=
        std::string::npos);
  CHECK(complaint([](auto& o) { o.check_idle_after = 0us; }) ==
        "RedisOptions: check_idle_after must be 1 us to 24 h, got 0 us");
  CHECK(complaint([](auto& o) { o.reconnect_min = 0us; }).find("reconnect_min") !=
        std::string::npos);
  CHECK(complaint([](auto& o) { o.reconnect_max = 1us; }) ==
        "RedisOptions: reconnect_max must be reconnect_min or more");
  CHECK(complaint([](auto& o) { o.reconnect_max = Span::max(); }).find("reconnect_max") !=
        std::string::npos);
  CHECK(complaint([](auto& o) { o.key_prefix = "a{b"; }).find("no braces") != std::string::npos);
  CHECK(complaint([](auto& o) { o.key_prefix = std::string(65, 'a'); }).find("64 bytes") !=
        std::string::npos);
}

TEST_CASE("the options at their bounds are accepted", "[options]") {
  CHECK(complaint([](auto& o) {
          o.unix_socket = std::string(107, 'x');
          o.port = 0;
          o.max_in_flight = 1U << 20;
          o.call_timeout = o.connect_timeout = o.stall_timeout = o.reconnect_max = 24h;
          o.reconnect_min = 1us;
          o.key_prefix = std::string(64, 'a');
        }) == "");
}

TEST_CASE("Sentinels that cannot be asked are refused", "[options]") {
  const auto about = [](const std::function<void(RedisSentinel&)>& change) {
    return complaint([&](RedisOptions& o) {
      change(o.sentinel.emplace(RedisSentinel{.master = "m", .sentinels = {{"s1"}, {"s2"}}}));
    });
  };
  CHECK(about([](auto&) {}).empty());
  CHECK(about([](auto& s) { s.master = ""; }) == "RedisOptions: sentinel.master must not be empty");
  CHECK(about([](auto& s) { s.sentinels.clear(); }) ==
        "RedisOptions: sentinel.sentinels must not be empty");
  CHECK(about([](auto& s) { s.sentinels[1].host = ""; }) ==
        "RedisOptions: sentinel.sentinels: host must not be empty");
  CHECK(about([](auto& s) { s.sentinels[1].port = 0; }) ==
        "RedisOptions: sentinel.sentinels: port must be 1 to 65535, got 0");
  CHECK(about([](auto& s) { s.username = "u"; }) ==
        "RedisOptions: a sentinel.username needs a sentinel.password");
  CHECK(about([](auto& s) {
          s.username = "u";
          s.password = "x";
        }).empty());
  CHECK(about([](auto& s) {
          s.password = "x";
          s.credentials = [] { return RedisCredentials{}; };
        }) == "RedisOptions: sentinel.credentials and a sentinel.password exclude each other");
  const std::string tls = about([](auto& s) { s.tls.emplace().key_file = "k"; });
  CHECK((tls == "RedisOptions: sentinel.tls.certificate_file and sentinel.tls.key_file must be set "
                "both or none" ||
         tls == "RedisOptions: sentinel.tls is set, and this build of Sluice has no OpenSSL"));
}

TEST_CASE("a cluster excludes what one server has", "[options]") {
  const auto about = [](const std::function<void(RedisOptions&)>& change) {
    return complaint([&](RedisOptions& o) {
      o.cluster = {{"n1"}, {"n2"}};
      change(o);
    });
  };
  CHECK(about([](auto&) {}).empty());
  CHECK(about([](auto& o) { o.cluster[1].host = ""; }) ==
        "RedisOptions: cluster: host must not be empty");
  CHECK(about([](auto& o) { o.cluster[1].port = 0; }) ==
        "RedisOptions: cluster: port must be 1 to 65535, got 0");
  CHECK(about([](auto& o) {
          o.sentinel.emplace(RedisSentinel{"m", {{"s"}}});
        }) == "RedisOptions: cluster and sentinel exclude each other");
  CHECK(about([](auto& o) { o.unix_socket = "/s"; }) ==
        "RedisOptions: cluster and unix_socket exclude each other");
  CHECK(about([](auto& o) { o.database = 1; }) ==
        "RedisOptions: database must be 0 with cluster, got 1");
  CHECK(about([](auto& o) { o.host = ""; }).empty());
}

TEST_CASE("a secret cannot be printed or compared, and is wiped when it moves", "[options]") {
  CHECK_FALSE(Printable<Secret>);
  CHECK_FALSE(std::equality_comparable<Secret>);
  const char* const nothing = nullptr;
  CHECK(Secret(nothing).empty());
  Secret secret("canary");
  Secret moved(std::move(secret));
  CHECK(secret.empty());  // NOLINT(bugprone-use-after-move): what is left is the claim
  CHECK(moved.reveal() == "canary");
  const Secret copy = moved;
  CHECK(copy.reveal() == "canary");
}
