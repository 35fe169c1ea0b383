// Options out of range, secrets, and URLs of stores: what each form fills, and what is refused.
// Threading: single-threaded.
#include <functional>
#include <stdexcept>
#include <type_traits>

#include "backends/redis/connection/tls_session.hpp"
#include "sluice/redis/redis_url.hpp"
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/resp.hpp"
#include "tests/redis/sheet.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

using Changes =
    std::vector<std::pair<std::function<void(RedisOptions&)>, std::string>>;  // and what is said

/// Each change alone is refused with these words, or accepted without.
void check(const RedisOptions& base, const Changes& changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    RedisOptions options = base;
    changes[i].first(options);
    std::string said;
    try {
      const auto store = make_redis_store(options);
    } catch (const std::invalid_argument& error) {
      said = error.what();
    }
    CHECK(said == (changes[i].second.empty() ? "" : "RedisOptions: " + changes[i].second));
  }
}

std::string bad_span(const std::string& name, const std::string& us) {
  return name + " must be 1 us to 24 h, got " + us + " us";
}

template <class T>
concept Printable = requires(std::ostream& out, const T& value) {
  out << value;
};

/// What differs from the default, and where the store is.
std::string told(const RedisOptions& options) {
  std::string text;
  const auto tell = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : " ") + name + "=" + value;
  };
  const auto tell_tls = [&](const std::string& prefix, const std::optional<RedisTls>& tls) {
    if (!tls) return;
    tell(prefix + "tls", tls->verify == TlsVerify::none    ? "none"
                         : tls->verify == TlsVerify::chain ? "chain"
                                                           : "full");
    tell(prefix + "ca_file", tls->ca_file);
    tell(prefix + "ca_folder", tls->ca_folder);
    tell(prefix + "certificate", tls->certificate_file);
    tell(prefix + "key", tls->key_file);
    tell(prefix + "name", tls->server_name);
  };
  const auto tell_all = [&](const std::string& name, const std::vector<RedisAddress>& addresses) {
    for (const RedisAddress& each : addresses) {
      tell(name, each.host + " " + std::to_string(each.port));
    }
  };
  const RedisOptions usual;
  if (options.host != usual.host) tell("host", options.host);
  if (options.port != usual.port) tell("port", std::to_string(options.port));
  tell("socket", options.unix_socket);
  tell_all("node", options.cluster);
  if (options.database != 0) tell("database", std::to_string(options.database));
  tell("user", options.username);
  tell("password", std::string(options.password.reveal()));
  tell_tls("", options.tls);
  if (options.sentinel) {
    tell("master", options.sentinel->master);
    tell_all("sentinel", options.sentinel->sentinels);
    tell("its_user", options.sentinel->username);
    tell("its_password", std::string(options.sentinel->password.reveal()));
    tell_tls("its_", options.sentinel->tls);
  }
  CHECK(options.call_timeout == usual.call_timeout);
  return text;
}

/// The options of a URL, or what is wrong with it.
std::string told(std::string_view url) {
  try {
    return told(parse_redis_url(url));
  } catch (const std::invalid_argument& error) {
    const std::string_view text = error.what();
    CHECK(text.starts_with("parse_redis_url: "));
    return "!" + std::string(text.substr(text.find(' ') + 1));
  }
}

void check(const std::string& sheet) {
  for (const auto& row : rows_of(sheet)) {
    CAPTURE(row[0]);
    CHECK(told(row[0]) == row[1]);
  }
}

}  // namespace

TEST_CASE("an option out of range is refused with its name and its range", "[options]") {
  const std::string most = std::to_string(Span::max().count());
  const std::string key_prefix = "key_prefix must have at most 64 bytes and no braces";
  check({},
        {{[](auto& o) { o.host = ""; }, "host must not be empty"},
         {[](auto& o) { o.port = 0; }, "port must be 1 to 65535, got 0"},
         {[](auto& o) { o.unix_socket = std::string(108, 'x'); },
          "unix_socket must have at most 107 bytes, got 108"},
         {[](auto& o) { o.username = "u"; }, "a username needs a password"},
         {[](auto& o) {
            o.password = "x";
            o.credentials = [] { return RedisCredentials{}; };
          },
          "credentials and a password exclude each other"},
         {[](auto& o) { o.max_in_flight = 0; }, "max_in_flight must be 1 to 1048576, got 0"},
         {[](auto& o) { o.max_in_flight = (1U << 20) + 1; },
          "max_in_flight must be 1 to 1048576, got 1048577"},
         {[](auto& o) { o.call_timeout = 0us; }, bad_span("call_timeout", "0")},
         {[](auto& o) { o.connect_timeout = -1us; }, bad_span("connect_timeout", "-1")},
         {[](auto& o) { o.stall_timeout = Span::max(); }, bad_span("stall_timeout", most)},
         {[](auto& o) { o.check_idle_after = 0us; }, bad_span("check_idle_after", "0")},
         {[](auto& o) { o.reconnect_min = 0us; }, bad_span("reconnect_min", "0")},
         {[](auto& o) { o.reconnect_max = 24h + 1us; }, bad_span("reconnect_max", "86400000001")},
         {[](auto& o) { o.reconnect_max = 1us; }, "reconnect_max must be reconnect_min or more"},
         {[](auto& o) { o.key_prefix = "a{b"; }, key_prefix},
         {[](auto& o) { o.key_prefix = "a}b"; }, key_prefix},
         {[](auto& o) { o.key_prefix = std::string(65, 'a'); }, key_prefix},
         {[](auto& o) {  // at the bounds
            o.unix_socket = std::string(107, 'x');
            o.port = 0;
            o.max_in_flight = 1U << 20;
            o.call_timeout = o.connect_timeout = o.stall_timeout = o.reconnect_max = 24h;
            o.reconnect_min = 1us;
            o.key_prefix = std::string(64, 'a');
          },
          ""}});
}

TEST_CASE("Sentinels that cannot be asked are refused", "[options]") {
  RedisOptions base;
  base.sentinel.emplace(RedisSentinel{.master = "m", .sentinels = {{"s1"}, {"s2"}}});
  const std::string tls =
      "sentinel.tls.certificate_file and sentinel.tls.key_file must be set both or none";
  check(
      base,
      {{[](auto&) {}, ""},
       {[](auto& o) { o.sentinel->master = ""; }, "sentinel.master must not be empty"},
       {[](auto& o) { o.sentinel->sentinels.clear(); }, "sentinel.sentinels must not be empty"},
       {[](auto& o) { o.sentinel->sentinels[1].host = ""; },
        "sentinel.sentinels: host must not be empty"},
       {[](auto& o) { o.sentinel->sentinels[1].port = 0; },
        "sentinel.sentinels: port must be 1 to 65535, got 0"},
       {[](auto& o) { o.sentinel->username = "u"; },
        "a sentinel.username needs a sentinel.password"},
       {[](auto& o) {
          o.sentinel->username = "u";
          o.sentinel->password = "x";
        },
        ""},
       {[](auto& o) {
          o.sentinel->password = "x";
          o.sentinel->credentials = [] { return RedisCredentials{}; };
        },
        "sentinel.credentials and a sentinel.password exclude each other"},
       {[](auto& o) { o.sentinel->tls.emplace().key_file = "k"; },
        redis_detail::has_tls() ? tls
                                : "sentinel.tls is set, and this build of Sluice has no OpenSSL"}});
}

TEST_CASE("a cluster excludes what one server has", "[options]") {
  RedisOptions base;
  base.cluster = {{"n1"}, {"n2"}};
  check(base,
        {{[](auto&) {}, ""},
         {[](auto& o) { o.host = ""; }, ""},
         {[](auto& o) { o.cluster[1].host = ""; }, "cluster: host must not be empty"},
         {[](auto& o) { o.cluster[1].port = 0; }, "cluster: port must be 1 to 65535, got 0"},
         {[](auto& o) {
            o.sentinel.emplace(RedisSentinel{"m", {{"s"}}});
          },
          "cluster and sentinel exclude each other"},
         {[](auto& o) { o.unix_socket = "/s"; }, "cluster and unix_socket exclude each other"},
         {[](auto& o) { o.database = 1; }, "database must be 0 with cluster, got 1"}});
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

TEST_CASE("a URL fills the options that it names, and leaves the rest as it is", "[redis_url]") {
  check(R"(
redis://redis.example => host=redis.example
redis://app:p%40ss%3A%2f@10.0.0.7:7000/15
  => host=10.0.0.7 port=7000 database=15 user=app password=p@ss:/
redis://h/ => host=h
redis://:secret@h => host=h password=secret
redis://u:a:b@h => host=h user=u password=a:b
redis://[::1] => host=::1
redis://[fe80::1%25eth0]:7000/2 => host=fe80::1%eth0 port=7000 database=2
redis://[::1]:65535 => host=::1 port=65535
unix://app:x@/run/my%20redis.sock?database=3
  => socket=/run/my redis.sock database=3 user=app password=x
unix:///s => socket=/s
rediss://h => host=h tls=full
rediss://:x@h:7/1?ca_file=/a%20b.pem&ca_folder=/c&certificate_file=d&key_file=e&server_name=f.g&verify=chain
  => host=h port=7 database=1 password=x tls=chain ca_file=/a b.pem ca_folder=/c certificate=d
  key=e name=f.g
rediss://h?verify=none => host=h tls=none
redis+sentinel://s1/mymaster => master=mymaster sentinel=s1 26379
redis+sentinel://app:p%40ss@s1:1,[::1],[::2]:65535,10.0.0.1/my%2Fmaster/7?sentinel_password=o%26t=her&sentinel_user=watch
  => database=7 user=app password=p@ss master=my/master sentinel=s1 1 sentinel=::1 26379
  sentinel=::2 65535 sentinel=10.0.0.1 26379 its_user=watch its_password=o&t=her
redis+sentinel://h/m/ => master=m sentinel=h 26379
redis+cluster://app:x@h1,h2:7000,[::1]/
  => node=h1 6379 node=h2 7000 node=::1 6379 user=app password=x
redis+cluster://h => node=h 6379
rediss+sentinel://h/m?ca_file=/a&verify=chain&sentinel_password=x
  => tls=chain ca_file=/a master=m sentinel=h 26379 its_password=x its_tls=chain its_ca_file=/a
rediss+cluster://h1,h2?server_name=n => node=h1 6379 node=h2 6379 tls=full name=n
)");
}

TEST_CASE("a URL that is wrong is refused with the part that is", "[redis_url]") {
  for (const auto* url :
       {"", "redis", "redis:", "redis:/h", "://h", "http://h", "Redis://h", "redis.example:6379",
        "redis+x://h", "unix+cluster://h", "redis+sentinel+cluster://h", "redis+cluster:h"}) {
    CAPTURE(url);
    CHECK(told(url) ==
          "!a URL begins with redis://, rediss://, unix://, redis+sentinel://, "
          "rediss+sentinel://, redis+cluster:// or rediss+cluster://");
  }
  for (const std::string port : {"0", "65536", "99999", ""}) {
    CHECK(told("redis://h:" + port) == "!the port must be 1 to 65535, got \"" + port + "\"");
  }
  for (const std::string port : {"-1", "+1", "6379x", "99999999999999999999", "%36379"}) {
    CHECK(told("redis://h:" + port) ==
          "!the port must be 1 to 65535; behind a password stand an @ and the host");
  }
  for (const std::string database : {"x", "-1", "1/2", "1000001", " 1"}) {
    CHECK(told("redis://h/" + database) ==
          "!the database must be 0 to 1000000, got \"" + database + "\"");
  }
  for (const std::string path : {"", "/", "//0", "/?sentinel_password=x"}) {
    CHECK(told("redis+sentinel://h1,h2" + path) ==
          "!the master has no name: write it behind the hosts, as in "
          "redis+sentinel://host/mymaster");
  }
  for (const std::string scheme : {"redis", "rediss", "redis+cluster", "rediss+cluster"}) {
    CHECK(told(scheme + "://h?sentinel_password=x") ==
          "!the parameter \"sentinel_password\" needs redis+sentinel:// or rediss+sentinel://");
  }
  CHECK(told("redis+sentinel://h/m?user=x")
            .starts_with("!the parameter \"user\" is not known; allowed are "));
  check(R"(
redis:// => !there is no host
redis://:6379 => !there is no host
redis://:x@:6379 => !there is no host
redis://[] => !there is no host
redis://[::1 => !the host has a [ without a ]
redis://[::1]x => !only a port may stand behind the ] of a host
redis://::1 => !an IPv6 address as host must stand in brackets, as in redis://[::1]:6379
redis://a b => !the host "a b" is no name
redis://a%20b => !the host "a b" is no name
redis://a%0a => !the host "a\x0a" is no name
redis://%4 => !a % in the host must be followed by two hex digits
redis://a,b => !a list of hosts needs redis+sentinel:// or redis+cluster://
redis://u@h => !the user has no password: write user:password@ or :password@
redis://u:@h => !the user has no password: write user:password@ or :password@
redis://:%zz@h => !a % in the password must be followed by two hex digits
redis://:a%00@h => !the password must not hold a zero byte
redis://h#x => !a # must be written as %23
unix://run/s => !the path must begin with /, as in unix:///run/redis.sock
unix:// => !the path must begin with /, as in unix:///run/redis.sock
redis://h?ca_file=/x => !the parameter "ca_file" needs TLS: write rediss://
unix:///s?verify=none => !the parameter "verify" needs TLS: write rediss://
rediss://h?verify=maybe => !verify must be full, chain or none, got "maybe"
rediss://h?verify=full&verify=none => !the parameter "verify" stands twice
rediss://h?ca_file => !the parameter "ca_file" has no value
rediss://h?ca_file= => !the parameter "ca_file" has no value
rediss://h?ca_file=%4 => !a % in the parameter "ca_file" must be followed by two hex digits
redis://h?database=1 => !the parameter "database" needs unix://
redis+cluster://h?database=1 => !the parameter "database" needs unix://
redis+sentinel://h/m?verify=full
  => !the parameter "verify" needs TLS: write rediss+sentinel://
redis+cluster://h?key_file=x => !the parameter "key_file" needs TLS: write rediss+cluster://
redis+sentinel://h/m?sentinel_user=x => !sentinel_user needs sentinel_password
redis+sentinel://h/m?sentinel_password=x&sentinel_password=y
  => !the parameter "sentinel_password" stands twice
redis+sentinel://h/m?sentinel_password= => !the parameter "sentinel_password" has no value
redis+sentinel://h/m/x => !the database must be 0 to 1000000, got "x"
redis+sentinel://h/m/1/2 => !the database must be 0 to 1000000, got "1/2"
redis+sentinel://h/m%zz => !a % in the name of the master must be followed by two hex digits
redis+cluster://h/0 => !a cluster has no databases, got "0"
redis+cluster://h1,h2/m/1 => !a cluster has no databases, got "m/1"
)");
  for (const std::string scheme : {"redis+sentinel", "rediss+cluster"}) {
    const std::string end = scheme.ends_with("sentinel") ? "/m" : "";
    std::string many = "h";
    for (int i = 1; i < 64; ++i) many += ",h";
    CHECK_FALSE(told(scheme + "://" + many + end).starts_with('!'));
    CHECK(told(scheme + "://" + many + ",h" + end) == "!a list must have at most 64 hosts, got 65");
    for (const auto& row : rows_of(R"(
 => !there is no host
:x@ => !there is no host
:7 => !there is no host
h1,:7 => !there is no host
h1,[] => !there is no host
, => !a host of the list is empty
h1, => !a host of the list is empty
,h1 => !a host of the list is empty
h1,,h2 => !a host of the list is empty
h1,h2:0,h3 => !the port must be 1 to 65535, got "0"
h1,h2:65536 => !the port must be 1 to 65535, got "65536"
h1:,h2 => !the port must be 1 to 65535, got ""
h1,[::1 => !the host has a [ without a ]
h1,[::1]7 => !only a port may stand behind the ] of a host
h1,::1 => !an IPv6 address as host must stand in brackets, as in redis://[::1]:6379
h1, h2 => !the host " h2" is no name
h1,h% => !a % in the host must be followed by two hex digits
u@h => !the user has no password: write user:password@ or :password@
u:p@h1,u:p@h2
  => !an @ of the user or password must be written as %40; they stand before all hosts
)")) {
      CAPTURE(scheme, row[0]);
      CHECK(told(scheme + "://" + row[0] + end) == row[1]);
    }
  }
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
    const std::string text = told(url);
    CAPTURE(url);
    CHECK(text.starts_with('!'));
    CHECK(text.find(canary) == std::string::npos);
  }
}

TEST_CASE("any bytes are a URL or a complaint", "[redis_url]") {
  Random random("any bytes are a URL or a complaint");
  CAPTURE(random.repeat());
  const auto schemes = split(
      "redis://;rediss://;unix://;redis+sentinel://;rediss+sentinel://;redis+cluster://;"
      "rediss+cluster://");
  const auto pieces = split(
      ",;:;@;/;?;#;%;%41;[;];&;=;h;1;::;0;\xff;none;verify;ca_file;redis://;sentinel_user;"
      "sentinel_password");
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < scaled(20'000); ++i) {
    std::string url = schemes[random.below(schemes.size())];
    for (auto n = random.below(8); n > 0; --n) url += pieces[random.below(pieces.size())];
    try {
      const RedisOptions options = parse_redis_url(url);
      CHECK(options.port != 0);
      CHECK((!options.host.empty() || !options.unix_socket.empty()));
      CHECK(options.tls.has_value() == url.starts_with("rediss"));
      CHECK(options.cluster.empty() == (url.find("+cluster://") > 6));
      CHECK(options.sentinel.has_value() == (url.find("+sentinel://") < 7));
      for (const auto& address : options.sentinel ? options.sentinel->sentinels : options.cluster) {
        CHECK((!address.host.empty() && address.port != 0));
      }
      ++accepted;
    } catch (const std::invalid_argument& error) {
      CHECK(std::string_view(error.what()).starts_with("parse_redis_url: "));
    }
  }
  CHECK(accepted > 0);
}
