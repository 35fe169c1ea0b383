// Scripts on a real server: lost in mid-load, forbidden, and the same on Valkey.
// Threading: the test's thread asks; some tests have a second thread that disturbs the server.
#include "tests/conformance/check.hpp"
#include "tests/left_out.hpp"
#include "tests/redis/real/scripts.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("scripts lost in mid-load are loaded again and no caller sees it", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  check_lost_scripts({&server}, socket_options(server), "SCRIPT", 500us);
}

TEST_CASE("Valkey keeps every promise, and loses scripts and functions unseen as well",
          "[redis][valkey]") {
  if (redis_left_out()) return;
  const auto server = valkey_server();
  if (!server) {
    return leave_out("no valkey-server in PATH nor in SLUICE_VALKEY_SERVER");
  }
  check_store(*connect_socket(*server));
  check_store(*connect_tcp(*server));
  check_lost_scripts({server.get()}, socket_options(*server), "SCRIPT", 500us);
  RedisOptions functions = socket_options(*server);
  functions.scripts = RedisScripts::functions;
  functions.key_prefix = "other:";  // fresh keys
  check_lost_scripts({server.get()}, functions, "FUNCTION", 20ms);
}

TEST_CASE("a user with the documented rights can do everything, and loads scripts", "[redis]") {
  if (redis_left_out()) return;
  constexpr const char* name =
      "a user with the documented rights can do everything, and loads scripts";
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  RedisOptions options = socket_options(server);
  options.username = "limiter";
  options.password = "secret";
  options.key_prefix = "rl:";
  const auto grant = [&](std::initializer_list<std::string_view> more) {
    std::vector<std::string_view> words{
        "ACL",   "SETUSER", "limiter", "reset", "on",      ">secret",   "~rl:*",     "+evalsha",
        "+eval", "+time",   "+get",    "+mget", "+psetex", "+getrange", "+setrange", "+pexpire"};
    words.insert(words.end(), more.begin(), more.end());
    REQUIRE(admin.command(words).text == "OK");
  };
  SECTION("with the right to load") {
    grant({"+script|load", "+ping", "+client|setname"});
    // Of each row its own, and that of a plan of it with an id; and those of two plans. The two
    // rows of constants are answered without the server where they have no id.
    CHECK(ask_all_rows(options, name) == 2 * operations().size() + 2 - 2);
  }
  SECTION("without it, the text travels with the call") {
    grant({});
    CHECK(ask_all_rows(options, name) == 0);
  }
  SECTION("a key outside of its pattern is refused") {
    grant({});
    options.key_prefix = "other:";
    const auto store = make_redis_store(options);
    CHECK(Bucket(*store, Quota::per_second(10)).error("a") == Errc::no_permission);
    CHECK(admin({"DBSIZE"}).integer == 0);
  }
  SECTION("without a right to read or write, nothing is admitted") {
    const std::string_view missing =
        GENERATE(std::string_view("-psetex"), std::string_view("-get"), std::string_view("-time"));
    grant({missing});
    const auto store = make_redis_store(options);
    CHECK(Bucket(*store, Quota::per_second(10)).error("a") == Errc::no_permission);
    CHECK(admin({"DBSIZE"}).integer == 0);
  }
  SECTION("without the right to write in place, a plan changes nothing") {
    grant({});
    const auto store = make_redis_store(options);
    const TokenBucket bucket(*store, "api", Quota::per_hour(10));
    for (int i = 0; i < 2; ++i) CHECK(bucket.try_acquire("b"));
    grant({"-setrange"});
    const auto expiry = [&] { return admin({"PEXPIRETIME", "rl:{b}:api:10/h"}).integer; };
    Word before = 0;
    std::error_code error;
    do {  // until both are asked within half a second of each other
      before = expiry();
      static_cast<void>(
          decide(*store, {bucket.acquire_step("new"), bucket.acquire_step("b")}, error));
    } while (!error && before != expiry() && admin({"DEL", "rl:{new}:api:10/h"}).integer == 1);
    CHECK(error == Errc::no_permission);
    CHECK(admin({"EXISTS", "rl:{new}:api:10/h"}).integer == 0);
  }
}
