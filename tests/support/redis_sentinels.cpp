#include "tests/support/redis_sentinels.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace sluice::test {

using namespace std::chrono_literals;

RedisSentinels::RedisSentinels(Options options) : options_(std::move(options)) {
  start_servers();
  start_sentinels();
  await_ok();
}

void RedisSentinels::start_servers() {
  RedisSetup setup;
  setup.password = options_.password;
  setup.config = {"repl-diskless-sync-delay 0"};
  use_tls(setup, options_.tls);
  for (const std::string& line : options_.config) setup.config.push_back(line);
  for (std::size_t i = 0; i < size; ++i) {
    RedisSetup own = setup;
    if (i < options_.environments.size()) own.environment = options_.environments[i];
    if (i > 0) {
      own.config.push_back("replicaof 127.0.0.1 " + std::to_string(servers_.front()->port()));
    }
    servers_.push_back(std::make_unique<RedisServer>(own));
  }
}

void RedisSentinels::start_sentinels() {
  const std::string name = group;
  RedisSetup setup;
  setup.arguments = {"--sentinel"};
  use_tls(setup, options_.tls);
  const std::vector<std::string> lines{
      "sentinel monitor " + name + " 127.0.0.1 " + std::to_string(servers_.front()->port()) + " 2",
      "sentinel down-after-milliseconds " + name + " " + std::to_string(options_.down_after_ms),
      "sentinel failover-timeout " + name + " 2000"};
  setup.config.insert(setup.config.end(), lines.begin(), lines.end());
  if (!options_.password.empty()) {
    setup.config.push_back("sentinel auth-pass " + name + " " + options_.password);
  }
  if (!options_.sentinel_password.empty()) {
    setup.config.push_back("requirepass " + options_.sentinel_password);
    setup.config.push_back("sentinel sentinel-pass " + options_.sentinel_password);
  }
  for (std::size_t i = 0; i < size; ++i) sentinels_.push_back(std::make_unique<RedisServer>(setup));
}

RedisClient RedisSentinels::client(std::size_t node) const {
  return log_in(*servers_.at(node), options_.password);
}

RedisClient RedisSentinels::sentinel_client(std::size_t i) const {
  return log_in(*sentinels_.at(i), options_.sentinel_password);
}

std::size_t RedisSentinels::running_sentinel() const {
  for (std::size_t i = 0; i < size; ++i) {
    if (sentinels_[i]->running()) return i;
  }
  throw std::runtime_error("no Sentinel runs");
}

std::uint16_t RedisSentinels::port_named_by(std::size_t sentinel) const {
  const RedisReply reply =
      sentinel_client(sentinel)({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", group});
  return static_cast<std::uint16_t>(std::stoul(reply.elements.at(1).text));
}

std::uint16_t RedisSentinels::master_port() const { return port_named_by(running_sentinel()); }

std::size_t RedisSentinels::server_of(std::uint16_t port) const {
  for (std::size_t i = 0; i < size; ++i) {
    if (servers_[i]->port() == port) return i;
  }
  throw std::runtime_error("the Sentinels name a stranger");
}

std::size_t RedisSentinels::promoted(std::size_t old) const {
  for (std::size_t i = 0; i < size; ++i) {
    if (i != old && role_of(*servers_[i], options_.password) == "master") return i;
  }
  return size;
}

std::size_t RedisSentinels::await_promotion(std::size_t old) const {
  std::size_t now = size;
  await("a replica is promoted", [&] { return (now = promoted(old)) != size; });
  return now;
}

std::size_t RedisSentinels::force_failover() {
  const std::size_t old = master();
  std::size_t now = size;
  std::chrono::steady_clock::time_point again{};
  await("a forced failover", [&] {
    if (const auto time = std::chrono::steady_clock::now(); time >= again) {
      // Refused while another one ends; and given up if no replica seems good, which changes.
      const auto reply = sentinel_client(running_sentinel())({"SENTINEL", "FAILOVER", group});
      if (reply.is_error()) throw std::runtime_error(reply.text);
      again = time + 2'500ms;
    }
    return (now = promoted(old)) != size;
  });
  return now;
}

std::size_t RedisSentinels::fail_over() {
  const std::size_t old = master();
  const std::size_t asked = running_sentinel();
  std::size_t now = old;
  std::chrono::steady_clock::time_point again{};
  await("a failover", [&] {
    if (const auto time = std::chrono::steady_clock::now(); time >= again) {
      sentinel_client(asked)({"SENTINEL", "FAILOVER", group});  // refused while another one ends
      again = time + 5s;
    }
    now = server_of(port_named_by(asked));
    return now != old;
  });
  return now;
}

std::size_t RedisSentinels::kill_master() {
  const std::size_t node = master();
  servers_[node]->kill();
  return node;
}

std::size_t RedisSentinels::await_new_master(std::size_t old) const {
  std::size_t now = old;
  await("the Sentinels name another master", [&] {
    for (std::size_t i = 0; i < size; ++i) {
      if (!sentinels_[i]->running()) continue;
      now = server_of(port_named_by(i));
      if (now != old && role_of(*servers_[now], options_.password) == "master") return true;
    }
    return false;
  });
  return now;
}

void RedisSentinels::restart(std::size_t node) { servers_.at(node)->start(); }

bool RedisSentinels::is_ok(std::size_t i) const {
  RedisClient admin = sentinel_client(i);
  const RedisReply reply = admin({"SENTINEL", "MASTER", group});
  const auto value = [&](const std::string& name) -> std::string {
    for (std::size_t k = 0; k + 1 < reply.elements.size(); k += 2) {
      if (reply.elements[k].text == name) return reply.elements[k + 1].text;
    }
    return "";
  };
  return value("flags") == "master" && value("num-slaves") == "2" &&
         value("num-other-sentinels") == "2";
}

void RedisSentinels::await_ok() const {
  for (std::size_t i = 0; i < size; ++i) {
    if (!sentinels_[i]->running()) continue;
    await("Sentinel " + std::to_string(i) + " knows the others", [&] { return is_ok(i); });
  }
  const std::size_t first = master();
  for (std::size_t i = 0; i < size; ++i) {
    if (i == first || !servers_[i]->running()) continue;
    await("server " + std::to_string(i) + " is a replica", [&] {
      const std::string state = client(i)({"INFO", "replication"}).text;
      return field_of(state, "master_link_status") == "up" &&
             field_of(state, "master_port") == std::to_string(servers_[first]->port());
    });
  }
}

}  // namespace sluice::test
