// From the options to a connection: passwords, databases, full and idle servers, and what of it is
// visible afterwards. Threading: the test's thread.
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_hour(10);
const std::string canary = "c4n4ry-p4ssw0rd";

std::error_code error_with(const RedisOptions& options, Span within = std::chrono::seconds{10}) {
  const auto store = make_redis_store(options);
  return Bucket(*store, quota).error("a", within);
}

}  // namespace

TEST_CASE("a password is needed, must be right, and is then accepted", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server({"requirepass " + canary, "user other on >" + canary + "2 ~* +@all"});
  RedisOptions options = tcp_options(server);
  CHECK(error_with(options, 2s) == Errc::no_auth);
  options.password = "wrong";
  CHECK(error_with(options, 2s) == Errc::wrong_password);
  options.password = canary;
  CHECK_FALSE(error_with(options));
  options.username = "other";
  CHECK(error_with(options, 2s) == Errc::wrong_password);
  options.password = canary + "2";
  CHECK_FALSE(error_with(options));
  options.username = "nobody";
  CHECK(error_with(options, 2s) == Errc::wrong_password);
}

TEST_CASE("the reason of a failed login is known at any time, not only between attempts",
          "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server({"requirepass " + canary});
  RedisOptions options = socket_options(server);
  options.reconnect_max = 1ms;
  options.reconnect_min = 1ms;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK(bucket.error("a", 2s) == Errc::no_auth);
  for (int i = 0; i < 30; ++i) CHECK(bucket.error("a", 1ms) == Errc::no_auth);
}

TEST_CASE("the password is in no message and in no list of clients", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server({"requirepass " + canary});
  std::string seen;
  RedisOptions options = tcp_options(server);
  for (const std::string& password : {canary, "wrong-" + canary}) {
    options.password = password;
    const auto store = make_redis_store(options);
    const TokenBucket bucket(*store, "api", quota);
    try {
      static_cast<void>(decide(*store, Plan(bucket.acquire_step("a")).within(300ms)));
    } catch (const std::system_error& error) {
      seen += error.what();
      seen += error.code().message();
    }
    RedisClient admin(server.unix_socket());
    admin({"AUTH", canary});
    seen += admin({"CLIENT", "LIST"}).text;
  }
  options.host = "";
  try {
    const auto store = make_redis_store(options);
  } catch (const std::invalid_argument& error) {
    seen += error.what();
  }
  seen += server.log();
  CHECK(seen.find("WRONGPASS") != std::string::npos);
  CHECK(seen.find("name=sluice") != std::string::npos);
  CHECK(seen.find("host must not be empty") != std::string::npos);
  CHECK(seen.find(canary) == std::string::npos);
}

TEST_CASE("a database and a prefix of one's own keep keys apart", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisOptions options = socket_options(server);
  options.database = 3;
  options.key_prefix = "app1:";
  CHECK_FALSE(error_with(options));
  RedisClient admin(server.unix_socket());
  CHECK(admin({"DBSIZE"}).integer == 0);
  admin({"SELECT", "3"});
  CHECK(admin({"KEYS", "*"}).elements.at(0).text == "app1:{a}:api:10/h");
  options.database = 99;
  CHECK(error_with(options, 300ms) == Errc::not_connected);
}

TEST_CASE("a client name that the server does not like is done without", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisOptions options = socket_options(server);
  options.client_name = "not allowed\r\n";
  CHECK_FALSE(error_with(options));
}

TEST_CASE("a full server is an error of its own, until it has room", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server({"maxclients 1"});
  auto occupant = std::make_unique<RedisClient>(server.unix_socket());
  // The fixture's own client may still be leaving.
  REQUIRE(eventually([&] {
    try {
      return (*occupant)({"PING"}).text == "PONG";
    } catch (const std::runtime_error&) {
      occupant = std::make_unique<RedisClient>(server.unix_socket());
      return false;
    }
  }));
  const auto by_socket = connect_socket(server);
  const auto by_tcp = connect_tcp(server);
  for (const auto* store : {&by_socket, &by_tcp}) {
    CHECK(Bucket(**store, quota).error("a", 200ms) == Errc::too_many_clients);
  }
  occupant.reset();
  Asked first;
  Asked second;
  Bucket(*by_socket, quota).ask(first, "a");
  Bucket(*by_tcp, quota).ask(second, "a");
  CHECK(eventually([&] { return first.answers + second.answers > 0; }));
  CHECK((first.answers > 0 ? first : second).error == std::error_code());
}

TEST_CASE("the first call after the server closed an idle connection works", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server({"timeout 1"});
  const auto store = connect_tcp(server);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("a"));
  REQUIRE(eventually([&] { return store->stats().connections >= 2; }));
  CHECK_FALSE(bucket.error("a"));
}

TEST_CASE("a connection that an operator kills is replaced", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  const auto store = connect_tcp(server);
  const Bucket bucket(*store, quota);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    CHECK_FALSE(bucket.error("a"));
    CHECK(connections_named(admin, "sluice") == 1);
    admin({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    REQUIRE(eventually([&] { return store->stats().connections == i + 1; }));
  }
}
