// A real Redis Cluster for one test: three masters with a replica each, made by redis-cli.
// Threading: as RedisServer.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/redis_admin.hpp"

namespace sluice::test {

class RedisCluster {
 public:
  static constexpr std::size_t size = 6;
  static constexpr unsigned slots = 16'384;

  struct Options {
    std::string password{};
    const Certificates* tls = nullptr;  ///< the ports speak TLS; it outlives the cluster
    std::vector<std::string> config{};  ///< further lines of each node's redis.conf
  };

  /// Starts the nodes and waits until each knows the whole cluster, and each replica its master's
  /// data. Throws std::runtime_error if that fails; there is no server left then.
  explicit RedisCluster(Options options);
  RedisCluster() : RedisCluster(Options{}) {}

  [[nodiscard]] std::vector<std::uint16_t> ports() const { return ports_of(nodes_); }
  [[nodiscard]] std::uint16_t port(std::size_t node) const { return nodes_.at(node)->port(); }
  [[nodiscard]] RedisServer& server(std::size_t node) { return *nodes_.at(node); }
  /// A logged-in client of one node; it does not follow redirections.
  [[nodiscard]] RedisClient client(std::size_t node) const;

  /// SIGKILL: its data are lost, what it knows of the cluster is not.
  void kill(std::size_t node);
  /// Starts the node again.
  void restart(std::size_t node);
  void suspend(std::size_t node);
  void resume(std::size_t node);

  /// CLUSTER FAILOVER: the replica `node` takes its master's place; returns when it has.
  void failover(std::size_t node);
  /// Moves the slot with its keys between masters, as redis-cli does, while they serve.
  void move_slot(unsigned slot, std::size_t from, std::size_t to);

  /// The node that serves the slot, by the nodes themselves; the newest if several say so. Throws
  /// std::runtime_error if none does.
  [[nodiscard]] std::size_t master_of(unsigned slot) const;
  [[nodiscard]] std::vector<unsigned> slots_of(std::size_t node) const;
  [[nodiscard]] bool is_master(std::size_t node) const;
  /// The replicas of a master that run.
  [[nodiscard]] std::vector<std::size_t> replicas_of(std::size_t master) const;
  /// Waits until the nodes that run know the whole cluster, and agree on the place of each slot.
  /// Before that, masters refuse their votes to a replica that has not heard of a moved slot.
  void await_ok() const;

 private:
  /// A line of CLUSTER NODES.
  struct Line {
    std::string id, master;  // `master`: the id of a replica's master
    bool myself = false, is_master = false;
    std::uint64_t epoch = 0;
    std::vector<std::pair<unsigned, unsigned>> ranges;  // of slots, both ends included
  };

  void create();
  [[nodiscard]] bool is_ok(std::size_t node) const;
  /// Which node has which slots, as the node sees it.
  [[nodiscard]] std::string map_of(std::size_t node) const;
  [[nodiscard]] bool agree() const;
  [[nodiscard]] bool answers(std::size_t node) const;
  /// What the node says of itself.
  [[nodiscard]] Line self(std::size_t node) const;
  static Line parse(const std::string& line);
  void migrate(RedisClient& from, unsigned slot, std::uint16_t to) const;

  Options options_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
  std::set<std::size_t> suspended_;
};

/// The slot of a key: CRC16 of its hash tag, or of the key if it has none.
[[nodiscard]] unsigned cluster_slot(std::string_view key);

}  // namespace sluice::test
