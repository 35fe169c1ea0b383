// URLs of stores: what each form fills, and what is refused. Threading: single-threaded.
#include "sluice/redis/redis_url.hpp"

#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using sluice::test::Random;

namespace {

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
  const std::string schemes = call + "a URL begins with redis://, rediss:// or unix://";
  for (const auto* url : {"", "redis", "redis:", "redis:/h", "://h", "http://h", "Redis://h",
                          "redis.example:6379", "redis+x://h"}) {
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
  for (const auto* port : {"0", "65536", "", "-1", "+1", "6379x", "99999999999999999999"}) {
    CAPTURE(port);
    CHECK(complaint("redis://h:" + std::string(port)) ==
          call + "the port must be 1 to 65535, got \"" + port + "\"");
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
  CHECK(complaint("redis://h?database=1")
            .starts_with(call + "the parameter \"database\" is not known; allowed are "));
  CHECK(complaint("rediss://h?ca_file=%4") ==
        call + "a % in the parameter \"ca_file\" must be followed by two hex digits");
}

TEST_CASE("no complaint holds the password", "[redis_url]") {
  const std::string canary = "c4n4ry";
  for (const std::string& url :
       {"redis://:" + canary + "%zz@h", "redis://:" + canary + "%@h", "redis://:" + canary + "@",
        "redis://u:" + canary + "@h:0", "redis://u:" + canary + "@h/x", "http://u:" + canary + "@h",
        "redis://u:" + canary + "%00@h", "redis://u:" + canary + "@h?x=1",
        "unix://u:" + canary + "@x", canary}) {
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
  const std::string_view pieces[] = {"redis://", "rediss://", "unix://", ":",  "@", "/",   "?", "#",
                                     "%",        "%41",       "[",       "]",  "&", "=",   "h", "1",
                                     "verify",   "ca_file",   "none",    "::", "0", "\xff"};
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < sluice::test::scaled(20'000); ++i) {
    std::string url(pieces[random.below(3)]);
    for (auto n = random.below(8); n > 0; --n) url += pieces[random.below(std::size(pieces))];
    try {
      const RedisOptions options = parse_redis_url(url);
      CHECK(options.port != 0);
      CHECK((!options.host.empty() || !options.unix_socket.empty()));
      CHECK(options.tls.has_value() == url.starts_with("rediss"));
      ++accepted;
    } catch (const std::invalid_argument& error) {
      CHECK(std::string_view(error.what()).starts_with("parse_redis_url: "));
    }
  }
  CHECK(accepted > 0);
}
