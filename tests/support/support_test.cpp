// The fixtures themselves. Threading: single-threaded.
#include "tests/catch.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/seed.hpp"

using namespace sluice::test;

TEST_CASE("a server answers on its socket and its port, and forgets when it is killed",
          "[support][redis]") {
  if (redis_left_out()) return;
  RedisServer server({"maxmemory 100mb"});
  {
    RedisClient client(server.unix_socket());
    const std::string binary("a\r\n\0b", 5);
    CHECK(client({"SET", binary, binary}).text == "OK");
    CHECK(client({"GET", binary}).text == binary);
    CHECK(client({"CONFIG", "GET", "maxmemory"}).elements.at(1).text == "104857600");
    CHECK(RedisClient("127.0.0.1", server.port())({"DBSIZE"}).integer == 1);
    CHECK(client({"INCR", binary}).is_error());
    client.append({"PING"});
    client.append({"DBSIZE"});
    CHECK(client.read().text == "PONG");
    CHECK(client.read().integer == 1);
    CHECK(client.time_us() > 1'000'000'000'000'000);
  }
  server.restart();
  CHECK(RedisClient(server.unix_socket())({"DBSIZE"}).integer == 0);
  server.stop();
  CHECK_FALSE(server.running());
  CHECK_THROWS_AS(RedisClient(server.unix_socket()), std::runtime_error);
  server.start();
  CHECK(RedisClient(server.unix_socket())({"PING"}).text == "PONG");
}

TEST_CASE("a seed repeats its draws and is named in the line to type", "[support]") {
  Random first("a name");
  Random second("a name");
  for (int i = 0; i < 100; ++i) {
    const auto draw = first.between(-3, 7);
    CHECK(draw == second.between(-3, 7));
    CHECK((draw >= -3 && draw <= 7));
  }
  CHECK(first.between(INT64_MIN, INT64_MAX) == second.between(INT64_MIN, INT64_MAX));
  CHECK(first.repeat().find("SLUICE_SEED=" + std::to_string(seed())) == 0);
  CHECK(first.repeat().find("\"a name\"") != std::string::npos);
  CHECK(Random("one, two").repeat().find("\"one\\, two\"") != std::string::npos);
}
