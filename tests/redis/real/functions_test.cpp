// Functions on a real server: lost in mid-load, loaded by somebody else, forbidden, or unknown to
// the server. Threading: the test's thread asks; a second one takes the functions away.
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/redis/real/scripts.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

RedisOptions function_options(const RedisServer& server) {
  RedisOptions options = socket_options(server);
  options.scripts = RedisScripts::functions;
  return options;
}

const std::vector<std::string_view> rights{
    "ACL",   "SETUSER", "limiter", "reset",   "on",        ">secret",   "~rl:*",   "+fcall",
    "+time", "+get",    "+mget",   "+psetex", "+getrange", "+setrange", "+pexpire"};

/// The store of a user who may call functions and nothing else, but for `more`.
RedisOptions restricted(RedisServer& server, std::initializer_list<std::string_view> more = {}) {
  auto words = rights;
  words.insert(words.end(), more.begin(), more.end());
  REQUIRE(RedisClient(server.unix_socket()).command(words).text == "OK");
  RedisOptions options = function_options(server);
  options.username = "limiter";
  options.password = "secret";
  options.key_prefix = "rl:";
  return options;
}

void load(RedisServer& server) {
  RedisClient admin(server.unix_socket());
  CHECK(admin({"FUNCTION", "LOAD", redis_functions()}).text.starts_with("sluice_"));
}

const Quota quota = Quota::per_hour(10);

}  // namespace

TEST_CASE("functions lost in mid-load are loaded again and no caller sees it",
          "[redis][functions]") {
  if (redis_left_out()) return;
  const RedisServer server;
  check_lost_scripts({&server}, function_options(server), "FUNCTION", 20ms);
}

TEST_CASE("a user who may call functions and nothing else can do everything",
          "[redis][functions]") {
  if (redis_left_out()) return;
  RedisServer server;
  const RedisOptions options = restricted(server);
  load(server);
  CHECK(ask_all_rows(options, "a user who may call functions and nothing else can do everything") ==
        0);
  RedisClient client(server.unix_socket());
  CHECK(client({"AUTH", "limiter", "secret"}).text == "OK");
  CHECK(client({"EVAL", "return 0", "0"}).text.starts_with("NOPERM"));
  CHECK(client({"FUNCTION", "FLUSH"}).text.starts_with("NOPERM"));
}

TEST_CASE("without the library such a user is told what is missing, until somebody loads it",
          "[redis][functions]") {
  if (redis_left_out()) return;
  RedisServer server;
  const auto store = make_redis_store(restricted(server));
  const Bucket bucket(*store, quota);
  for (int i = 0; i < 3; ++i) {
    const std::error_code error = bucket.error("a");
    CHECK(error == Errc::no_function);
    CHECK(error == Failure::not_executed);
    CHECK(error.message().find("redis_functions()") != std::string::npos);
  }
  CHECK(RedisClient(server.unix_socket())({"DBSIZE"}).integer == 0);
  load(server);
  CHECK((*bucket).try_acquire("a").remaining == 9);
  CHECK(store->stats().connections == 1);
  SECTION("a restart without persistence loses it") {
    server.restart();
    RedisClient admin(server.unix_socket());
    REQUIRE_FALSE(admin.command(rights).is_error());
    REQUIRE(eventually([&] { return bucket.error("b") == Errc::no_function; }));
    load(server);
    CHECK_FALSE(bucket.error("b"));
  }
}

TEST_CASE("with the right to load, such a user loads the library once", "[redis][functions]") {
  if (redis_left_out()) return;
  RedisServer server;
  const auto options = restricted(server, {"+function|load"});
  const auto store = make_redis_store(options);
  const auto other = make_redis_store(options);
  CHECK((*Bucket(*store, quota)).try_acquire("a").remaining == 9);
  CHECK((*Bucket(*other, quota)).try_acquire("a").remaining == 8);
  CHECK(store->stats().scripts_loaded == 1);
  CHECK(other->stats().scripts_loaded == 0);
}

TEST_CASE("a right that is missing inside of a function admits nothing", "[redis][functions]") {
  if (redis_left_out()) return;
  RedisServer server;
  const std::string_view missing =
      GENERATE(std::string_view("-psetex"), std::string_view("-get"), std::string_view("-time"));
  load(server);
  const auto store = make_redis_store(restricted(server, {missing}));
  CHECK(Bucket(*store, quota).error("a") == Errc::no_permission);
  CHECK(RedisClient(server.unix_socket())({"DBSIZE"}).integer == 0);
}

TEST_CASE("stores with scripts and with functions share their limits", "[redis][functions]") {
  if (redis_left_out()) return;
  const RedisServer server;
  const auto scripts = connect_socket(server);
  const auto functions = make_redis_store(function_options(server));
  const TokenBucket one(*scripts, "api", quota);
  const TokenBucket other(*functions, "api", quota);
  for (Word left = 9; left > 0; left -= 2) {
    CHECK(one.try_acquire("a").remaining == left);
    CHECK(other.try_acquire("a").remaining == left - 1);
  }
}

TEST_CASE("a server without functions, or without memory for them, says so", "[redis][functions]") {
  if (redis_left_out()) return;
  SECTION("without functions, as before Redis 7.0") {
    const RedisServer server({"rename-command FCALL \"\""});
    const auto store = make_redis_store(function_options(server));
    CHECK(Bucket(*store, quota).error("a") == Errc::unknown_command);
  }
  SECTION("without memory") {
    const RedisServer server;
    const auto store = make_redis_store(function_options(server));
    const Bucket bucket(*store, quota);
    RedisClient admin(server.unix_socket());
    admin({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(bucket.error("a") == Errc::out_of_memory);  // loading them
    admin({"CONFIG", "SET", "maxmemory", "0"});
    CHECK_FALSE(bucket.error("b"));
    admin({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(bucket.error("a") == Errc::out_of_memory);  // calling one
    admin({"CONFIG", "SET", "maxmemory", "0"});
    CHECK((*bucket).try_acquire("a").remaining == 9);
  }
}
