#include "tests/support/redis_admin.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

namespace sluice::test {

using namespace std::chrono_literals;

RedisClient log_in(const RedisServer& server, const std::string& password) {
  RedisClient client(server.unix_socket());
  if (!password.empty()) {
    const RedisReply reply = client({"AUTH", password});
    if (reply.is_error()) throw std::runtime_error("AUTH: " + reply.text);
  }
  return client;
}

void await(const std::string& what, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  std::string last;
  while (std::chrono::steady_clock::now() < end) {
    try {
      if (condition()) return;
    } catch (const std::runtime_error& error) {  // a server that is down, or not ready
      last = error.what();
    }
    std::this_thread::sleep_for(2ms);
  }
  throw std::runtime_error("not within 60 s: " + what + (last.empty() ? "" : " (" + last + ")"));
}

std::string field_of(const std::string& info, const std::string& name) {
  const std::string text = "\n" + info;
  const auto at = text.find("\n" + name + ":");
  if (at == std::string::npos) return "";
  const auto start = at + name.size() + 2;
  return text.substr(start, text.find_first_of("\r\n", start) - start);
}

void use_tls(RedisSetup& setup, const Certificates* certificates) {
  setup.tls = certificates != nullptr;
  if (!setup.tls) return;
  const auto file = [&](const char* name) { return certificates->file(name); };
  for (const std::string& line :
       {"tls-cert-file " + file("server.pem"), "tls-key-file " + file("server.key"),
        "tls-ca-cert-file " + file("ca.pem"), std::string("tls-auth-clients no"),
        std::string("tls-replication yes"), std::string("tls-cluster yes")}) {
    setup.config.push_back(line);
  }
}

std::vector<std::uint16_t> ports_of(const std::vector<std::unique_ptr<RedisServer>>& servers) {
  std::vector<std::uint16_t> ports;
  for (const auto& server : servers) ports.push_back(server->port());
  return ports;
}

std::string role_of(const RedisServer& server, const std::string& password) {
  if (!server.running()) return "";
  try {
    const RedisReply reply = log_in(server, password)({"ROLE"});
    return reply.elements.empty() ? "" : reply.elements.front().text;
  } catch (const std::runtime_error&) {
    return "";
  }
}

}  // namespace sluice::test
