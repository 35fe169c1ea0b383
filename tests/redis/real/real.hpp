// Stores on a real server. Threading: the fixtures'.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <sstream>

#include "tests/redis/asking.hpp"
#include "tests/redis/resp.hpp"
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

/// A server that test cases share, one after the other: it holds nothing, knows no users and has no
/// connections when one begins. REQUIRES of the test case: it ends, hangs and configures nothing.
class SharedServer {
 public:
  SharedServer() {
    admin({"CLIENT", "UNPAUSE"});
    for (const char* type : {"normal", "pubsub"}) admin({"CLIENT", "KILL", "TYPE", type});
    for (const RedisReply& user : admin({"ACL", "USERS"}).elements) {
      if (user.text != "default") admin({"ACL", "DELUSER", user.text});
    }
    for (const char* kind : {"SCRIPT", "FUNCTION"}) admin({kind, "FLUSH"});
    admin({"FLUSHALL"});
  }

 protected:
  static const RedisServer& instance() {
    static const RedisServer server;
    return server;
  }

  const RedisServer& server = instance();
  RedisClient admin{server.unix_socket()};
};

/// And a store on it.
class SharedStore : public SharedServer {
 protected:
  std::unique_ptr<RedisStore> store = connect_socket(server);
};

/// The reply as a server sends it; none is nil.
inline std::string encoded(const RedisReply& reply) {
  switch (reply.type) {
    case RedisReply::Type::status:
      return "+" + reply.text + "\r\n";
    case RedisReply::Type::error:
      return "-" + reply.text + "\r\n";
    case RedisReply::Type::integer:
      return ":" + std::to_string(reply.integer) + "\r\n";
    case RedisReply::Type::array: {
      std::string bytes = "*" + std::to_string(reply.elements.size()) + "\r\n";
      for (const RedisReply& element : reply.elements) bytes += encoded(element);
      return bytes;
    }
    default:
      return bulk(reply.text);
  }
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
