#include "tests/support/redis_cluster.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

void must(const RedisReply& reply, const std::string& what) {
  if (reply.is_error()) throw std::runtime_error(what + ": " + reply.text);
}

}  // namespace

unsigned cluster_slot(std::string_view key) {
  const auto open = key.find('{');
  if (open != std::string_view::npos) {
    const auto close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  unsigned crc = 0;  // CRC-16/XMODEM: polynomial 0x1021
  for (const char byte : key) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(byte)) << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      crc = ((crc << 1U) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U)) & 0xffffU;
    }
  }
  return crc % RedisCluster::slots;
}

RedisCluster::RedisCluster(Options options) : options_(std::move(options)) {
  RedisSetup setup;
  setup.config = {"cluster-enabled yes", "cluster-node-timeout 1000",
                  "cluster-replica-validity-factor 0", "repl-diskless-sync-delay 0"};
  use_tls(setup, options_.tls);
  for (const std::string& line : options_.config) setup.config.push_back(line);
  setup.password = options_.password;
  // On a machine under load, redis-cli may wait for ever for nodes that do not meet.
  for (int attempt = 1;; ++attempt) {
    nodes_.clear();
    try {
      for (std::size_t i = 0; i < size; ++i) nodes_.push_back(std::make_unique<RedisServer>(setup));
      create();
      await_ok();
      return;
    } catch (const std::runtime_error&) {
      if (attempt == 3) throw;
    }
  }
}

void RedisCluster::create() {
  const std::string log = nodes_.front()->folder() + "/redis-cli.log";
  std::string command = "timeout 20 redis-cli";
  if (options_.tls != nullptr) {
    command += " --tls --cacert '" + options_.tls->file("ca.pem") + "'";
  }
  if (!options_.password.empty()) {
    command += " --no-auth-warning -a '" + options_.password + "'";
  }
  command += " --cluster create";
  for (const auto& node : nodes_) command += " 127.0.0.1:" + std::to_string(node->port());
  command += " --cluster-replicas 1 --cluster-yes >'" + log + "' 2>&1 </dev/null";
  if (std::system(command.c_str()) == 0) return;
  std::ifstream file(log);
  throw std::runtime_error("redis-cli --cluster create: " +
                           std::string(std::istreambuf_iterator<char>(file), {}));
}

RedisClient RedisCluster::client(std::size_t node) const {
  return log_in(*nodes_.at(node), options_.password);
}

void RedisCluster::kill(std::size_t node) {
  suspended_.erase(node);
  nodes_.at(node)->kill();
}

void RedisCluster::restart(std::size_t node) {
  suspended_.erase(node);
  nodes_.at(node)->start();
}

void RedisCluster::suspend(std::size_t node) {
  suspended_.insert(node);
  nodes_.at(node)->suspend();
}

void RedisCluster::resume(std::size_t node) {
  suspended_.erase(node);
  nodes_.at(node)->resume();
}

bool RedisCluster::answers(std::size_t node) const {
  return nodes_.at(node)->running() && !suspended_.contains(node);
}

void RedisCluster::failover(std::size_t node) {
  if (is_master(node)) throw std::runtime_error("node " + std::to_string(node) + " is a master");
  std::chrono::steady_clock::time_point again{};
  await("failover to node " + std::to_string(node), [&] {
    if (is_master(node)) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now < again) return false;
    // It refuses while it has lost its master, and gives up after 5 s.
    must(client(node)({"CLUSTER", "FAILOVER"}), "CLUSTER FAILOVER");
    again = now + 5'500ms;
    return false;
  });
}

void RedisCluster::migrate(RedisClient& from, unsigned slot, std::uint16_t to) const {
  const std::string number = std::to_string(slot);
  const std::string port = std::to_string(to);
  for (;;) {
    const RedisReply keys = from({"CLUSTER", "GETKEYSINSLOT", number, "100"});
    must(keys, "GETKEYSINSLOT");
    if (keys.elements.empty()) return;
    std::vector<std::string_view> words{"MIGRATE", "127.0.0.1", port, "", "0", "5000"};
    if (!options_.password.empty()) {
      words.push_back("AUTH");
      words.push_back(options_.password);
    }
    words.push_back("KEYS");
    for (const RedisReply& key : keys.elements) words.push_back(key.text);
    must(from.command(words), "MIGRATE");
  }
}

void RedisCluster::move_slot(unsigned slot, std::size_t from, std::size_t to) {
  const std::string number = std::to_string(slot);
  const std::string from_id = self(from).id;
  const std::string to_id = self(to).id;
  RedisClient source = client(from);
  RedisClient target = client(to);
  // After a failover, each may not know yet that the other one is a master.
  const auto begin = [&](RedisClient& node, const char* what, const std::string& other) {
    await(std::string(what) + " slot " + number, [&] {
      return !node({"CLUSTER", "SETSLOT", number, what, other}).is_error();
    });
  };
  begin(target, "IMPORTING", from_id);
  begin(source, "MIGRATING", to_id);
  migrate(source, slot, port(to));
  must(target({"CLUSTER", "SETSLOT", number, "NODE", to_id}), "SETSLOT NODE");
  must(source({"CLUSTER", "SETSLOT", number, "NODE", to_id}), "SETSLOT NODE");
  for (std::size_t i = 0; i < size; ++i) {
    if (i == from || i == to || !answers(i) || !is_master(i)) continue;
    must(client(i)({"CLUSTER", "SETSLOT", number, "NODE", to_id}), "SETSLOT NODE");
  }
  // A replica that hears of the source's next slot first would never believe the target.
  await("the nodes agree on slot " + number, [this] { return agree(); });
}

RedisCluster::Line RedisCluster::parse(const std::string& text) {
  std::istringstream words(text);
  std::string address, flags, ping, pong, link;
  Line line;
  words >> line.id >> address >> flags >> line.master >> ping >> pong >> line.epoch >> link;
  flags = "," + flags + ",";
  line.myself = flags.find(",myself,") != std::string::npos;
  line.is_master = flags.find(",master,") != std::string::npos;
  for (std::string range; words >> range;) {
    if (range.front() == '[') continue;  // a slot on its way
    const auto dash = range.find('-');
    const auto first = static_cast<unsigned>(std::stoul(range));
    const bool is_one = dash == std::string::npos;
    line.ranges.emplace_back(
        first, is_one ? first : static_cast<unsigned>(std::stoul(range.substr(dash + 1))));
  }
  return line;
}

RedisCluster::Line RedisCluster::self(std::size_t node) const {
  std::istringstream lines(client(node)({"CLUSTER", "NODES"}).text);
  for (std::string text; std::getline(lines, text);) {
    Line line = parse(text);
    if (line.myself) return line;
  }
  throw std::runtime_error("CLUSTER NODES names no node as its own");
}

bool RedisCluster::is_master(std::size_t node) const { return self(node).is_master; }

std::size_t RedisCluster::master_of(unsigned slot) const {
  std::size_t best = size;
  std::uint64_t epoch = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (!answers(i)) continue;
    const Line line = self(i);
    const bool serves = line.is_master && std::ranges::any_of(line.ranges, [&](const auto& range) {
                          return range.first <= slot && slot <= range.second;
                        });
    if (serves && (best == size || line.epoch > epoch)) {
      best = i;
      epoch = line.epoch;
    }
  }
  if (best == size) throw std::runtime_error("no node serves slot " + std::to_string(slot));
  return best;
}

std::vector<unsigned> RedisCluster::slots_of(std::size_t node) const {
  std::vector<unsigned> result;
  for (const auto& [first, last] : self(node).ranges) {
    for (unsigned slot = first; slot <= last; ++slot) result.push_back(slot);
  }
  return result;
}

std::vector<std::size_t> RedisCluster::replicas_of(std::size_t master) const {
  const std::string id = self(master).id;
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < size; ++i) {
    if (i == master || !answers(i)) continue;
    const Line line = self(i);
    if (!line.is_master && line.master == id) result.push_back(i);
  }
  return result;
}

bool RedisCluster::is_ok(std::size_t node) const {
  RedisClient admin = client(node);
  const std::string state = admin({"CLUSTER", "INFO"}).text;
  if (field_of(state, "cluster_state") != "ok" || field_of(state, "cluster_slots_ok") != "16384" ||
      field_of(state, "cluster_known_nodes") != std::to_string(size)) {
    return false;
  }
  const std::string replication = admin({"INFO", "replication"}).text;
  return field_of(replication, "role") == "master" ||
         field_of(replication, "master_link_status") == "up";
}

std::string RedisCluster::map_of(std::size_t node) const {
  std::istringstream lines(client(node)({"CLUSTER", "NODES"}).text);
  std::set<std::string> entries;
  for (std::string text; std::getline(lines, text);) {
    const Line line = parse(text);
    for (const auto& [first, last] : line.ranges) {
      entries.insert(line.id + " " + std::to_string(first) + "-" + std::to_string(last) + "\n");
    }
  }
  std::string map;
  for (const std::string& entry : entries) map += entry;
  return map;
}

bool RedisCluster::agree() const {
  std::set<std::string> maps;
  for (std::size_t i = 0; i < size; ++i) {
    if (answers(i)) maps.insert(map_of(i));
  }
  return maps.size() == 1;
}

void RedisCluster::await_ok() const {
  for (std::size_t i = 0; i < size; ++i) {
    if (!answers(i)) continue;
    await("node " + std::to_string(i) + " knows the cluster", [&] { return is_ok(i); });
  }
  await("the nodes agree on the slots", [&] { return agree(); });
}

}  // namespace sluice::test
