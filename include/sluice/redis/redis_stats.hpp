// What a Redis store tells of its connections and servers: events, statistics, health.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "sluice/time.hpp"

namespace sluice {

/// The stages of a connection.
enum class RedisStep : std::uint8_t {
  look_up,   ///< look-up of the addresses of a name
  connect,   ///< connection to one of them
  tls,       ///< the handshake, with RedisOptions::tls
  login,     ///< AUTH, the server's version and role, the client's name, PING
  select,    ///< SELECT of RedisOptions::database
  discover,  ///< a Sentinel is asked for the master, or a node for the map of the cluster
  serve,     ///< the connection is established
};

/// An event about connections: one was made, failed, or was lost.
struct RedisEvent {
  enum class Kind : std::uint8_t {
    connected,
    failed,       ///< an attempt at one address, or a look-up; the next one is automatic
    lost,         ///< an established connection
    switched,     ///< the Sentinels name another master, which is `address`
    map_changed,  ///< slots of the cluster have moved; `address` is the node that told
  };
  Kind kind = Kind::failed;
  RedisStep step = RedisStep::look_up;  ///< the stage that failed
  /// "127.0.0.1:6379", "[::1]:6379", the path of a unix socket; for a look-up, a switch and a map
  /// also "name:6379".
  std::string address{};
  /// The message of the system or the server: printable ASCII, at most 203 bytes. A reply to the
  /// login that is no known sentence is not shown if it has 4 bytes or more in common with the user
  /// name or the password. Empty if nothing failed.
  std::string cause{};
  /// The error of calls that wait for a connection until their deadline; none if nothing failed.
  std::error_code error{};

  /// "login at 127.0.0.1:6379: WRONGPASS invalid username-password pair or user is disabled."
  [[nodiscard]] std::string text() const;
};

/// Times from the writing of a request to the arrival of its reply, in the last one to two minutes.
/// Quantiles are less than 1/16 too high, and zero without a reply.
struct RedisReplyTimes {
  std::uint64_t replies = 0;
  Span p50{0};
  Span p99{0};
};

/// Statistics of one server of a store: of a cluster one for each node that the store has connected
/// to. A call that was redirected counts where it ended. Counters never decrease. The server that
/// comes in the place of another one (the next master that Sentinels name, a node for one that has
/// left the cluster) goes on with its counters, under its own address.
struct RedisNodeStats {
  std::string address{};  ///< as RedisEvent::address
  bool connected = false;
  std::size_t in_flight = 0;       ///< requests that wait for a reply now
  std::uint64_t decided = 0;       ///< calls that the server decided
  std::uint64_t not_executed = 0;  ///< calls that failed with Failure::not_executed
  std::uint64_t unknown = 0;       ///< calls that failed with Failure::unknown
  std::uint64_t connections = 0;   ///< successful connections, including the first
  std::uint64_t redirections = 0;  ///< MOVED and ASK replies that were followed
  RedisReplyTimes reply_times{};
};

/// Statistics of a Redis store, of all servers together. Counters never decrease. In a forked child
/// the last three stay empty.
///
/// Each call counts once in `decided`, `not_executed` or `unknown` when it ends, and until then in
/// `in_flight`.
struct RedisStats {
  std::uint64_t calls = 0;            ///< plans passed to the store
  std::uint64_t decided = 0;          ///< calls that a server decided, admitted or not
  std::uint64_t not_executed = 0;     ///< calls that failed with Failure::not_executed
  std::uint64_t unknown = 0;          ///< calls that failed with Failure::unknown
  std::size_t in_flight = 0;          ///< calls that have not ended now
  std::uint64_t connections = 0;      ///< successful connections, including the first
  std::uint64_t reconnects = 0;       ///< of them, those that replaced an earlier one
  std::uint64_t redirections = 0;     ///< MOVED and ASK replies that were followed
  std::uint64_t late_replies = 0;     ///< replies to calls that had already timed out
  std::uint64_t scripts_loaded = 0;   ///< scripts, or the library, that this store has loaded
  std::uint64_t protocol_errors = 0;  ///< connections closed because of an invalid reply
  /// Subscriptions that the server has confirmed; again with each new connection.
  std::uint64_t subscriptions = 0;
  std::uint64_t failed_attempts = 0;  ///< failed look-ups and attempts at one address
  RedisReplyTimes reply_times{};
  std::optional<RedisEvent> last_failure{};  ///< the latest failure or loss
  std::vector<RedisNodeStats> nodes{};       ///< empty without memory
};

/// What a server says that it is.
enum class RedisRole : std::uint8_t {
  unknown,  ///< not connected yet, or a proxy that does not say
  master,
  replica,
};

/// The state of one server of a store. Texts of the server are printable ASCII, at most 64 bytes.
struct RedisNodeHealth {
  std::string address{};  ///< as RedisEvent::address
  bool connected = false;
  RedisRole role = RedisRole::unknown;  ///< at the latest login
  std::string version{};                ///< "7.2.4", at the latest login; empty: it does not say
  /// "noeviction"; empty as long as no reply to INFO has come, or if the user may not use it.
  std::string maxmemory_policy{};
  /// Keys that were evicted since the server started: each may have been a limit that was in use.
  std::optional<std::uint64_t> evicted_keys{};
};

/// The state of a store's servers.
struct RedisHealth {
  /// There is a connection to the server; in a cluster, to at least one node, and to each that has
  /// slots and calls, or had calls before.
  bool connected = false;
  std::vector<RedisNodeHealth> nodes{};
};

}  // namespace sluice
