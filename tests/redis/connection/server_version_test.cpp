// What the reply to HELLO says. Threading: single-threaded.
#include "backends/redis/connection/server_version.hpp"

#include "tests/catch.hpp"
#include "tests/redis/protocol/reply_values.hpp"

using namespace sluice::test;
using sluice::redis_detail::Hello;
using sluice::redis_detail::read_hello;
using Kind = Hello::Kind;

TEST_CASE("the reply to HELLO states server, version, mode and role", "[version]") {
  const ReplyValue reply = array_value(
      {string_value("server"), string_value("redis"), string_value("version"),
       string_value("7.2.4"), string_value("proto"), integer_value(2), string_value("id"),
       integer_value(5), string_value("mode"), string_value("cluster"), string_value("role"),
       string_value("replica"), string_value("modules"),
       array_value({array_value({string_value("version"), integer_value(1)})})});
  const Hello hello = read_hello(reply);
  CHECK(hello.kind == Kind::map);
  CHECK(hello.server == "redis");
  CHECK(hello.version == "7.2.4");
  CHECK(hello.mode == "cluster");
  CHECK(hello.role == "replica");
  CHECK(hello.error.empty());
}

TEST_CASE("a field that is missing or no text is empty", "[version]") {
  for (const ReplyValue& reply :
       {array_value({}), array_value({string_value("version")}),
        array_value({string_value("version"), null_value()}),
        array_value({string_value("version"), integer_value(7)}),
        array_value({array_value({string_value("version"), string_value("7.0.0")})}),
        array_value({string_value("x"), string_value("version"), string_value("7.0.0")})}) {
    const Hello hello = read_hello(reply);
    CHECK(hello.kind == Kind::map);
    CHECK(hello.version.empty());
  }
}

TEST_CASE("another reply to HELLO is an error, some status, or nonsense", "[version]") {
  CHECK(read_hello(error_value("NOAUTH no")).kind == Kind::error);
  CHECK(read_hello(error_value("NOAUTH no")).error == "NOAUTH no");
  CHECK(read_hello(status_value("OK")).kind == Kind::other);
  CHECK(read_hello(null_value()).kind == Kind::nonsense);
  CHECK(read_hello(integer_value(1)).kind == Kind::nonsense);
  CHECK(read_hello(string_value("redis")).kind == Kind::nonsense);
}
