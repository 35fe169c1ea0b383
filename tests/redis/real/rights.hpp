// Users with few rights on a real server. Threading: the test's thread.
#pragma once

#include <string_view>
#include <vector>

#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/support/redis_client.hpp"

namespace sluice::test {

using Rights = std::vector<std::string_view>;

inline Rights without(Rights rights, std::string_view right) {
  REQUIRE(std::erase(rights, right) == 1);
  return rights;
}

/// Gives the user these rights and no others. The password is `secret`.
inline void grant(RedisClient client, std::string_view user, const Rights& rights) {
  std::vector<std::string_view> words{"ACL", "SETUSER", user, "reset", "on", ">secret"};
  words.insert(words.end(), rights.begin(), rights.end());
  const RedisReply reply = client.command(words);
  INFO(reply.text);
  REQUIRE(reply.text == "OK");
}

/// Of the user `limiter`, whose keys begin with `rl:`. The address is missing.
inline RedisOptions options_of_limiter() {
  RedisOptions options;
  options.username = "limiter";
  options.password = "secret";
  options.key_prefix = "rl:";
  options.call_timeout = 20s;
  options.connect_timeout = 5s;
  return options;
}

}  // namespace sluice::test
