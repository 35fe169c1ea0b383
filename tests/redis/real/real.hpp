// Stores on a real server. Threading: the fixtures'.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <sstream>

#include "tests/redis/asking.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

/// Options for tests in which nothing but the server should end a call.
inline RedisOptions socket_options(const RedisServer& server) {
  RedisOptions options;
  options.unix_socket = server.unix_socket();
  options.call_timeout = 20s;
  options.connect_timeout = 20s;
  options.stall_timeout = 20s;
  return options;
}

inline RedisOptions tcp_options(const RedisServer& server) {
  RedisOptions options = socket_options(server);
  options.unix_socket.clear();
  options.port = server.port();
  return options;
}

inline std::unique_ptr<RedisStore> connect_socket(const RedisServer& server) {
  return make_redis_store(socket_options(server));
}

inline std::unique_ptr<RedisStore> connect_tcp(const RedisServer& server) {
  return make_redis_store(tcp_options(server));
}

/// A valkey-server from SLUICE_VALKEY_SERVER or PATH; none if there is none.
inline std::unique_ptr<RedisServer> valkey_server() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string binary = variable("SLUICE_VALKEY_SERVER");
  std::istringstream folders(variable("PATH"));
  for (std::string folder; binary.empty() && std::getline(folders, folder, ':');) {
    const std::string candidate = folder + "/valkey-server";
    if (::access(candidate.c_str(), X_OK) == 0) binary = candidate;
  }
  if (binary.empty()) return nullptr;
  const std::string before = variable("SLUICE_REDIS_SERVER");
  ::setenv("SLUICE_REDIS_SERVER", binary.c_str(), 1);
  auto server = std::make_unique<RedisServer>();
  ::setenv("SLUICE_REDIS_SERVER", before.c_str(), 1);
  return server;
}

/// A field of INFO.
inline std::string info(RedisClient& client, const std::string& field) {
  const std::string text = client({"INFO"}).text;
  const auto at = text.find("\n" + field + ":");
  if (at == std::string::npos) return "";
  const auto start = at + field.size() + 2;
  return text.substr(start, text.find('\r', start) - start);
}

/// How many connections CLIENT LIST shows with this name.
inline int connections_named(RedisClient& client, const std::string& name) {
  const std::string list = client({"CLIENT", "LIST"}).text;
  int count = 0;
  for (auto at = list.find(" name=" + name + " "); at != std::string::npos;
       at = list.find(" name=" + name + " ", at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace sluice::test
