// Options out of range, secrets, and URLs of stores: what each form fills, and what is refused.
// Threading: single-threaded.
#include <array>
#include <functional>
#include <stdexcept>
#include <type_traits>

#include "sluice/redis/redis_url.hpp"
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/resp.hpp"
#include "tests/support/seed.hpp"

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

using Addresses = std::vector<RedisAddress>;

/// The list of Sentinels or nodes.
Addresses addresses_of(const RedisOptions& options) {
  return options.sentinel ? options.sentinel->sentinels : options.cluster;
}

std::string complaint(std::string_view url) {
  try {
    static_cast<void>(parse_redis_url(url));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

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

TEST_CASE("a URL fills host, port and database, and leaves the rest as it is", "[redis_url]") {
  const RedisOptions least = parse_redis_url("redis://redis.example");
  CHECK(least.host == "redis.example");
  CHECK(least.port == 6379);
  CHECK(least.database == 0);
  CHECK(least.username.empty());
  CHECK(least.password.empty());
  CHECK_FALSE(least.tls);
  CHECK(least.call_timeout == RedisOptions().call_timeout);

  const RedisOptions all = parse_redis_url("redis://app:p%40ss%3A%2f@10.0.0.7:7000/15");
  CHECK(all.host == "10.0.0.7");
  CHECK(all.port == 7000);
  CHECK(all.database == 15);
  CHECK(all.username == "app");
  CHECK(all.password.reveal() == "p@ss:/");

  CHECK(parse_redis_url("redis://h/").database == 0);
  CHECK(parse_redis_url("redis://:secret@h").username.empty());
  CHECK(parse_redis_url("redis://:secret@h").password.reveal() == "secret");
  CHECK(parse_redis_url("redis://u:a:b@h").password.reveal() == "a:b");
  CHECK(parse_redis_url("redis://[::1]").host == "::1");
  CHECK(parse_redis_url("redis://[fe80::1%25eth0]:7000/2").host == "fe80::1%eth0");
  CHECK(parse_redis_url("redis://[::1]:65535").port == 65'535);
}

TEST_CASE("a URL of a unix socket has a path and may name a database", "[redis_url]") {
  const RedisOptions options = parse_redis_url("unix://app:x@/run/my%20redis.sock?database=3");
  CHECK(options.unix_socket == "/run/my redis.sock");
  CHECK(options.database == 3);
  CHECK(options.username == "app");
  CHECK(options.password.reveal() == "x");
  CHECK(parse_redis_url("unix:///s").unix_socket == "/s");
}

TEST_CASE("rediss means TLS, and its parameters fill the options of it", "[redis_url]") {
  const RedisOptions plain = parse_redis_url("rediss://h");
  REQUIRE(plain.tls);
  CHECK(plain.tls->verify == TlsVerify::full);
  CHECK(plain.tls->ca_file.empty());
  const RedisOptions full = parse_redis_url(
      "rediss://:x@h:7/1?ca_file=/a%20b.pem&ca_folder=/c&certificate_file=d&key_file=e"
      "&server_name=f.g&verify=chain");
  REQUIRE(full.tls);
  CHECK(full.tls->ca_file == "/a b.pem");
  CHECK(full.tls->ca_folder == "/c");
  CHECK(full.tls->certificate_file == "d");
  CHECK(full.tls->key_file == "e");
  CHECK(full.tls->server_name == "f.g");
  CHECK(full.tls->verify == TlsVerify::chain);
  CHECK(full.database == 1);
  CHECK(parse_redis_url("rediss://h?verify=none").tls->verify == TlsVerify::none);
}

TEST_CASE("a URL that is wrong is refused with the part that is", "[redis_url]") {
  const std::string call = "parse_redis_url: ";
  const std::string schemes =
      call +
      "a URL begins with redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, "
      "redis+cluster:// or rediss+cluster://";
  for (const auto* url :
       {"", "redis", "redis:", "redis:/h", "://h", "http://h", "Redis://h", "redis.example:6379",
        "redis+x://h", "unix+cluster://h", "redis+sentinel+cluster://h", "redis+cluster:h"}) {
    CAPTURE(url);
    CHECK(complaint(url) == schemes);
  }
  CHECK(complaint("redis://") == call + "there is no host");
  CHECK(complaint("redis://:6379") == call + "there is no host");
  CHECK(complaint("redis://:x@:6379") == call + "there is no host");
  CHECK(complaint("redis://[]") == call + "there is no host");
  CHECK(complaint("redis://[::1") == call + "the host has a [ without a ]");
  CHECK(complaint("redis://[::1]x") == call + "only a port may stand behind the ] of a host");
  CHECK(complaint("redis://::1") ==
        call + "an IPv6 address as host must stand in brackets, as in redis://[::1]:6379");
  CHECK(complaint("redis://a b") == call + "the host \"a b\" is no name");
  CHECK(complaint("redis://a%20b") == call + "the host \"a b\" is no name");
  CHECK(complaint("redis://a%0a") == call + "the host \"a\\x0a\" is no name");
  CHECK(complaint("redis://%4") == call + "a % in the host must be followed by two hex digits");
  CHECK(complaint("redis://a,b") ==
        call + "a list of hosts needs redis+sentinel:// or redis+cluster://");
  for (const auto* port : {"0", "65536", "99999", ""}) {
    CAPTURE(port);
    CHECK(complaint("redis://h:" + std::string(port)) ==
          call + "the port must be 1 to 65535, got \"" + port + "\"");
  }
  for (const auto* port : {"-1", "+1", "6379x", "99999999999999999999", "%36379"}) {
    CAPTURE(port);
    CHECK(complaint("redis://h:" + std::string(port)) ==
          call + "the port must be 1 to 65535; behind a password stand an @ and the host");
  }
  for (const auto* database : {"x", "-1", "1/2", "1000001", " 1"}) {
    CAPTURE(database);
    CHECK(complaint("redis://h/" + std::string(database)) ==
          call + "the database must be 0 to 1000000, got \"" + database + "\"");
  }
  CHECK(complaint("redis://h#x") == call + "a # must be written as %23");
  CHECK(complaint("unix://run/s") ==
        call + "the path must begin with /, as in unix:///run/redis.sock");
  CHECK(complaint("unix://") == call + "the path must begin with /, as in unix:///run/redis.sock");
}

TEST_CASE("parameters that are unknown, twice, empty or of the wrong scheme are refused",
          "[redis_url]") {
  const std::string call = "parse_redis_url: ";
  CHECK(complaint("redis://h?ca_file=/x") ==
        call + "the parameter \"ca_file\" needs TLS: write rediss://");
  CHECK(complaint("unix:///s?verify=none") ==
        call + "the parameter \"verify\" needs TLS: write rediss://");
  CHECK(complaint("rediss://h?verify=maybe") ==
        call + "verify must be full, chain or none, got \"maybe\"");
  CHECK(complaint("rediss://h?verify=full&verify=none") ==
        call + "the parameter \"verify\" stands twice");
  CHECK(complaint("rediss://h?ca_file") == call + "the parameter \"ca_file\" has no value");
  CHECK(complaint("rediss://h?ca_file=") == call + "the parameter \"ca_file\" has no value");
  CHECK(complaint("redis://h?database=1") == call + "the parameter \"database\" needs unix://");
  CHECK(complaint("redis+cluster://h?database=1") ==
        call + "the parameter \"database\" needs unix://");
  CHECK(complaint("redis+sentinel://h/m?verify=full") ==
        call + "the parameter \"verify\" needs TLS: write rediss+sentinel://");
  CHECK(complaint("redis+cluster://h?key_file=x") ==
        call + "the parameter \"key_file\" needs TLS: write rediss+cluster://");
  for (const std::string scheme : {"redis", "rediss", "redis+cluster", "rediss+cluster"}) {
    CHECK(complaint(scheme + "://h?sentinel_password=x") ==
          call + "the parameter \"sentinel_password\" needs redis+sentinel:// or " +
              "rediss+sentinel://");
  }
  CHECK(complaint("redis+sentinel://h/m?sentinel_user=x") ==
        call + "sentinel_user needs sentinel_password");
  CHECK(complaint("redis+sentinel://h/m?sentinel_password=x&sentinel_password=y") ==
        call + "the parameter \"sentinel_password\" stands twice");
  CHECK(complaint("redis+sentinel://h/m?sentinel_password=") ==
        call + "the parameter \"sentinel_password\" has no value");
  CHECK(complaint("redis+sentinel://h/m?user=x")
            .starts_with(call + "the parameter \"user\" is not known; allowed are "));
  CHECK(complaint("rediss://h?ca_file=%4") ==
        call + "a % in the parameter \"ca_file\" must be followed by two hex digits");
}

TEST_CASE("a URL of Sentinels has a list of them and the name of a master", "[redis_url]") {
  const RedisOptions least = parse_redis_url("redis+sentinel://s1/mymaster");
  REQUIRE(least.sentinel);
  CHECK(least.sentinel->master == "mymaster");
  CHECK(least.sentinel->sentinels == Addresses{{"s1", 26'379}});
  CHECK(least.sentinel->username.empty());
  CHECK(least.sentinel->password.empty());
  CHECK_FALSE(least.sentinel->tls);
  CHECK_FALSE(least.tls);
  CHECK(least.database == 0);
  CHECK(least.password.empty());
  CHECK(least.cluster.empty());

  const RedisOptions all = parse_redis_url(
      "redis+sentinel://app:p%40ss@s1:1,[::1],[::2]:65535,10.0.0.1/my%2Fmaster/7"
      "?sentinel_password=o%26t=her&sentinel_user=watch");
  REQUIRE(all.sentinel);
  CHECK(all.sentinel->master == "my/master");
  CHECK(all.sentinel->sentinels ==
        Addresses{{"s1", 1}, {"::1", 26'379}, {"::2", 65'535}, {"10.0.0.1", 26'379}});
  CHECK(all.username == "app");
  CHECK(all.password.reveal() == "p@ss");
  CHECK(all.database == 7);
  CHECK(all.sentinel->username == "watch");
  CHECK(all.sentinel->password.reveal() == "o&t=her");
  CHECK(parse_redis_url("redis+sentinel://h/m/").database == 0);
}

TEST_CASE("a URL of a cluster has a list of nodes", "[redis_url]") {
  const RedisOptions options = parse_redis_url("redis+cluster://app:x@h1,h2:7000,[::1]/");
  CHECK(options.cluster == Addresses{{"h1", 6379}, {"h2", 7000}, {"::1", 6379}});
  CHECK(options.username == "app");
  CHECK(options.password.reveal() == "x");
  CHECK_FALSE(options.sentinel);
  CHECK_FALSE(options.tls);
  CHECK(parse_redis_url("redis+cluster://h").cluster == Addresses{{"h", 6379}});
}

TEST_CASE("an s in the scheme of a list means TLS, to Sentinels as well", "[redis_url]") {
  const RedisOptions sentinel =
      parse_redis_url("rediss+sentinel://h/m?ca_file=/a&verify=chain&sentinel_password=x");
  REQUIRE(sentinel.tls);
  REQUIRE((sentinel.sentinel && sentinel.sentinel->tls));
  for (const RedisTls& tls : {*sentinel.tls, *sentinel.sentinel->tls}) {
    CHECK(tls.ca_file == "/a");
    CHECK(tls.verify == TlsVerify::chain);
  }
  const RedisOptions cluster = parse_redis_url("rediss+cluster://h1,h2?server_name=n");
  REQUIRE(cluster.tls);
  CHECK(cluster.tls->server_name == "n");
  CHECK(cluster.cluster.size() == 2);
}

TEST_CASE("a list of hosts that is wrong is refused with the part that is", "[redis_url]") {
  const std::string call = "parse_redis_url: ";
  for (const std::string scheme :
       {"redis+sentinel://", "rediss+sentinel://", "redis+cluster://", "rediss+cluster://"}) {
    CAPTURE(scheme);
    const std::string end = scheme.find("sentinel") != std::string::npos ? "/m" : "";
    const auto about = [&](const std::string& hosts) { return complaint(scheme + hosts + end); };
    CHECK(about("h1,h2").empty());
    CHECK(about("") == call + "there is no host");
    CHECK(about(":x@") == call + "there is no host");
    CHECK(about(":7") == call + "there is no host");
    CHECK(about("h1,:7") == call + "there is no host");
    CHECK(about("h1,[]") == call + "there is no host");
    for (const std::string hosts : {",", "h1,", ",h1", "h1,,h2"}) {
      CHECK(about(hosts) == call + "a host of the list is empty");
    }
    CHECK(about("h1,h2:0,h3") == call + "the port must be 1 to 65535, got \"0\"");
    CHECK(about("h1,h2:65536") == call + "the port must be 1 to 65535, got \"65536\"");
    CHECK(about("h1:,h2") == call + "the port must be 1 to 65535, got \"\"");
    CHECK(about("h1,[::1") == call + "the host has a [ without a ]");
    CHECK(about("h1,[::1]7") == call + "only a port may stand behind the ] of a host");
    CHECK(about("h1,::1") ==
          call + "an IPv6 address as host must stand in brackets, as in redis://[::1]:6379");
    CHECK(about("h1, h2") == call + "the host \" h2\" is no name");
    CHECK(about("h1,h%") == call + "a % in the host must be followed by two hex digits");
    CHECK(about("u@h") == call + "the user has no password: write user:password@ or :password@");
    CHECK(about("u:p@h1,u:p@h2") == call + "an @ of the user or password must be written as " +
                                        "%40; they stand before all hosts");
    std::string many = "h";
    for (int i = 1; i < 64; ++i) many += ",h";
    CHECK(about(many).empty());
    CHECK(about(many + ",h") == call + "a list must have at most 64 hosts, got 65");
  }
}

TEST_CASE("Sentinels without a name, and a cluster with a database, are refused", "[redis_url]") {
  const std::string call = "parse_redis_url: ";
  for (const std::string path : {"", "/", "//0", "/?sentinel_password=x"}) {
    CAPTURE(path);
    CHECK(complaint("redis+sentinel://h1,h2" + path) ==
          call + "the master has no name: write it behind the hosts, as in " +
              "redis+sentinel://host/mymaster");
  }
  CHECK(complaint("redis+sentinel://h/m/x") ==
        call + "the database must be 0 to 1000000, got \"x\"");
  CHECK(complaint("redis+sentinel://h/m/1/2") ==
        call + "the database must be 0 to 1000000, got \"1/2\"");
  CHECK(complaint("redis+sentinel://h/m%zz") ==
        call + "a % in the name of the master must be followed by two hex digits");
  CHECK(complaint("redis+cluster://h/0") == call + "a cluster has no databases, got \"0\"");
  CHECK(complaint("redis+cluster://h1,h2/m/1") == call + "a cluster has no databases, got \"m/1\"");
}

TEST_CASE("no complaint holds the password", "[redis_url]") {
  const std::string canary = "c4n4ry";
  for (std::string url :
       split("redis://:CANARY%zz@h;redis://:CANARY%@h;redis://:CANARY@;redis://u:CANARY;"
             "redis://u:CANARY/0;redis://u:CANARY%40h;redis+cluster://u:CANARY;"
             "redis+sentinel://u:CANARY/m;redis://u:CANARY@h:0;redis://u:CANARY@h/x;"
             "http://u:CANARY@h;redis://u:CANARY%00@h;redis://u:CANARY@h?x=1;unix://u:CANARY@x;"
             "CANARY;redis://u:CANARY/x@h;redis://u:CANARY?x@h;redis://u:CANARY#x@h;"
             "redis://u:x/CANARY@h;redis://u:x?CANARY@h;unix://u:x?CANARY@/s;"
             "redis+cluster://u:CANARY%zz@h1,h2;redis+cluster://u:CANARY@h1,,h2;"
             "redis+cluster://u:CANARY@h1,h2/0;redis+cluster://u:CANARY@h1,h2:0;"
             "redis+cluster://u:x/CANARY@h1,h2;redis+cluster://u:x@h1,u:CANARY@h2;"
             "redis+sentinel://u:CANARY@h;redis+sentinel://u:CANARY@h/m/x;"
             "redis+sentinel://h/m?sentinel_password=CANARY%zz;"
             "redis+sentinel://h/m?sentinel_password=CANARY%00;"
             "redis+sentinel://h/m?sentinel_password=CANARY@x;"
             "redis+sentinel://h/m?sentinel_password=x&CANARY;"
             "redis+sentinel://h/m?sentinel_password=x&CANARY=1;"
             "redis+sentinel://h/m?sentinel_password=x&CANARY=1&CANARY=1;"
             "redis+sentinel://h?sentinel_password=CANARY;"
             "redis+cluster://h?sentinel_password=CANARY;"
             "redis+sentinel://h/m?sentinel_password=CANARY&sentinel_password=CANARY;"
             "redis+sentinel://h/m?sentinel_password=CANARY&verify=x")) {
    for (auto at = url.find("CANARY"); at != std::string::npos; at = url.find("CANARY")) {
      url.replace(at, 6, canary);
    }
    const std::string text = complaint(url);
    CAPTURE(url);
    CHECK_FALSE(text.empty());
    CHECK(text.find(canary) == std::string::npos);
  }
  CHECK(complaint("redis://u@h") ==
        "parse_redis_url: the user has no password: write user:password@ or :password@");
  CHECK(complaint("redis://u:@h") ==
        "parse_redis_url: the user has no password: write user:password@ or :password@");
  CHECK(complaint("redis://:%zz@h") ==
        "parse_redis_url: a % in the password must be followed by two hex digits");
  CHECK(complaint("redis://:a%00@h") == "parse_redis_url: the password must not hold a zero byte");
}

TEST_CASE("any bytes are a URL or a complaint", "[redis_url]") {
  Random random("any bytes are a URL or a complaint");
  CAPTURE(random.repeat());
  constexpr auto schemes = std::to_array<std::string_view>(
      {"redis://", "rediss://", "unix://", "redis+sentinel://", "rediss+sentinel://",
       "redis+cluster://", "rediss+cluster://"});
  constexpr auto pieces = std::to_array<std::string_view>({",",
                                                           ":",
                                                           "@",
                                                           "/",
                                                           "?",
                                                           "#",
                                                           "%",
                                                           "%41",
                                                           "[",
                                                           "]",
                                                           "&",
                                                           "=",
                                                           "h",
                                                           "1",
                                                           "::",
                                                           "0",
                                                           "\xff",
                                                           "none",
                                                           "verify",
                                                           "ca_file",
                                                           "redis://",
                                                           "sentinel_user",
                                                           "sentinel_password"});
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < sluice::test::scaled(20'000); ++i) {
    std::string url(schemes[random.below(std::size(schemes))]);
    for (auto n = random.below(8); n > 0; --n) url += pieces[random.below(std::size(pieces))];
    try {
      const RedisOptions options = parse_redis_url(url);
      CHECK(options.port != 0);
      CHECK((!options.host.empty() || !options.unix_socket.empty()));
      CHECK(options.tls.has_value() == url.starts_with("rediss"));
      CHECK(options.cluster.empty() == (url.find("+cluster://") > 6));
      CHECK(options.sentinel.has_value() == (url.find("+sentinel://") < 7));
      for (const auto& address : addresses_of(options)) {
        CHECK((!address.host.empty() && address.port != 0));
      }
      ++accepted;
    } catch (const std::invalid_argument& error) {
      CHECK(std::string_view(error.what()).starts_with("parse_redis_url: "));
    }
  }
  CHECK(accepted > 0);
}
