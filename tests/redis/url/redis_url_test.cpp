// URLs of stores: what each form fills, and what is refused. Threading: single-threaded.
#include "sluice/redis/redis_url.hpp"

#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using sluice::test::Random;

namespace {

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
  for (const std::string& url :
       {"redis://:" + canary + "%zz@h",
        "redis://:" + canary + "%@h",
        "redis://:" + canary + "@",
        "redis://u:" + canary,
        "redis://u:" + canary + "/0",
        "redis://u:" + canary + "%40h",
        "redis+cluster://u:" + canary,
        "redis+sentinel://u:" + canary + "/m",
        "redis://u:" + canary + "@h:0",
        "redis://u:" + canary + "@h/x",
        "http://u:" + canary + "@h",
        "redis://u:" + canary + "%00@h",
        "redis://u:" + canary + "@h?x=1",
        "unix://u:" + canary + "@x",
        canary,
        "redis://u:" + canary + "/x@h",
        "redis://u:" + canary + "?x@h",
        "redis://u:" + canary + "#x@h",
        "redis://u:x/" + canary + "@h",
        "redis://u:x?" + canary + "@h",
        "unix://u:x?" + canary + "@/s",
        "redis+cluster://u:" + canary + "%zz@h1,h2",
        "redis+cluster://u:" + canary + "@h1,,h2",
        "redis+cluster://u:" + canary + "@h1,h2/0",
        "redis+cluster://u:" + canary + "@h1,h2:0",
        "redis+cluster://u:x/" + canary + "@h1,h2",
        "redis+cluster://u:x@h1,u:" + canary + "@h2",
        "redis+sentinel://u:" + canary + "@h",
        "redis+sentinel://u:" + canary + "@h/m/x",
        "redis+sentinel://h/m?sentinel_password=" + canary + "%zz",
        "redis+sentinel://h/m?sentinel_password=" + canary + "%00",
        "redis+sentinel://h/m?sentinel_password=" + canary + "@x",
        "redis+sentinel://h/m?sentinel_password=x&" + canary,
        "redis+sentinel://h/m?sentinel_password=x&" + canary + "=1",
        "redis+sentinel://h/m?sentinel_password=x&" + canary + "=1&" + canary + "=1",
        "redis+sentinel://h?sentinel_password=" + canary,
        "redis+cluster://h?sentinel_password=" + canary,
        "redis+sentinel://h/m?sentinel_password=" + canary + "&sentinel_password=" + canary,
        "redis+sentinel://h/m?sentinel_password=" + canary + "&verify=x"}) {
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
  const std::string_view schemes[] = {"redis://",          "rediss://",          "unix://",
                                      "redis+sentinel://", "rediss+sentinel://", "redis+cluster://",
                                      "rediss+cluster://"};
  const std::string_view pieces[] = {"redis://",
                                     "sentinel_user",
                                     "sentinel_password",
                                     ",",
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
                                     "verify",
                                     "ca_file",
                                     "none",
                                     "::",
                                     "0",
                                     "\xff"};
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
