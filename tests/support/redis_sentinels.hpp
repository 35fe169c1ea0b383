// A master with two replicas and three Sentinels for one test. Threading: as RedisServer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/redis_admin.hpp"

namespace sluice::test {

class RedisSentinels {
 public:
  static constexpr std::size_t size = 3;  ///< of the servers, and of the Sentinels
  static constexpr const char* group = "mymaster";

  struct Options {
    std::string password{};           ///< of the servers
    std::string sentinel_password{};  ///< of the Sentinels
    /// How long a server must be silent before a Sentinel believes it dead. Sentinels connect to a
    /// server once a second at most. With less than that, they may take a master that they have
    /// just promoted for dead, and replace it again; so may those of a busy machine.
    int down_after_ms = 2'000;
    const Certificates* tls = nullptr;  ///< all ports speak TLS; it outlives the servers
    std::vector<std::string> config{};  ///< further lines of each server's redis.conf
    /// Variables of each server, the first of them for the first master; may be shorter.
    std::vector<std::vector<std::string>> environments{};
  };

  /// Starts all, and waits until each Sentinel knows the others and both replicas. Throws
  /// std::runtime_error if that fails; there is no server left then.
  explicit RedisSentinels(Options options);
  RedisSentinels() : RedisSentinels(Options{}) {}

  /// Of the Sentinels.
  [[nodiscard]] std::vector<std::uint16_t> ports() const { return ports_of(sentinels_); }
  [[nodiscard]] RedisServer& server(std::size_t node) { return *servers_.at(node); }
  [[nodiscard]] RedisServer& sentinel(std::size_t i) { return *sentinels_.at(i); }
  [[nodiscard]] RedisClient client(std::size_t node) const;
  [[nodiscard]] RedisClient sentinel_client(std::size_t i) const;

  /// The port that the first Sentinel that runs names.
  [[nodiscard]] std::uint16_t master_port() const;
  /// The server of master_port().
  [[nodiscard]] std::size_t master() const { return server_of(master_port()); }

  /// SENTINEL FAILOVER; returns the new master as soon as it takes writes. The Sentinels name it a
  /// moment later: await_new_master().
  std::size_t force_failover();
  /// The same, but returns once a Sentinel names it. They give a failover up if a busy server does
  /// not answer for two seconds: it is asked for again then.
  std::size_t fail_over();
  /// SIGKILL; returns which server it was. The Sentinels promote another one.
  std::size_t kill_master();
  /// Waits until another server than `old` is a master.
  [[nodiscard]] std::size_t await_promotion(std::size_t old) const;
  /// Waits until one of the Sentinels names another server than `old`, and that is a master.
  std::size_t await_new_master(std::size_t old) const;
  /// Starts the server again; the Sentinels make it a replica.
  void restart(std::size_t node);
  /// Waits until each server that runs is in its place, and every Sentinel knows it.
  void await_ok() const;

 private:
  void start_servers();
  void start_sentinels();
  [[nodiscard]] bool is_ok(std::size_t sentinel) const;
  [[nodiscard]] std::size_t running_sentinel() const;
  [[nodiscard]] std::uint16_t port_named_by(std::size_t sentinel) const;
  [[nodiscard]] std::size_t server_of(std::uint16_t port) const;
  /// A server other than `old` that is a master; `size` if there is none.
  [[nodiscard]] std::size_t promoted(std::size_t old) const;

  Options options_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

}  // namespace sluice::test
