// The options of a Redis store.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/key.hpp"
#include "sluice/redis/redis_stats.hpp"
#include "sluice/redis/redis_tls.hpp"
#include "sluice/redis/secret.hpp"
#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice {

/// How the store runs its scripts. Both forms decide alike with the same keys, so that stores of
/// both forms share limits.
enum class RedisScripts {
  eval,       ///< EVALSHA; a script that the server lacks is sent to it
  functions,  ///< FCALL of a library (Redis 7.0), for users without EVAL: see docs/failures.md
};

/// The user and password of AUTH.
struct RedisCredentials {
  std::string username{};  ///< needs a password as well; empty means the default user
  Secret password{};       ///< empty means no AUTH
};

/// The name or address of a server, and its TCP port.
struct RedisAddress {
  std::string host{};
  std::uint16_t port = 6379;
  friend bool operator==(const RedisAddress&, const RedisAddress&) = default;
};

/// Redis Sentinel: the servers that know which server is the master of a group, and name another
/// one when it fails.
struct RedisSentinel {
  std::string master{};                             ///< the name of the group: "mymaster"
  std::vector<RedisAddress> sentinels{};            ///< one or more; the store learns of the others
  std::string username{};                           ///< of the Sentinels: needs a password as well
  Secret password{};                                ///< of the Sentinels; empty means no AUTH
  std::function<RedisCredentials()> credentials{};  ///< as RedisOptions::credentials
  std::optional<RedisTls> tls{};                    ///< encrypts the connections to the Sentinels
};

/// The address of the server, the login, and the timeouts and bounds of the store.
/// parse_redis_url() fills the first of them from a URL (sluice/redis/redis_url.hpp).
struct RedisOptions {
  /// Name or address of the server; not used if `unix_socket` is set.
  std::string host = "127.0.0.1";
  std::uint16_t port = 6379;
  /// Path of a unix socket; empty means TCP.
  std::string unix_socket{};
  /// The Sentinels that name the server; `host`, `port` and `unix_socket` are not used then.
  std::optional<RedisSentinel> sentinel{};
  /// Nodes of a Redis Cluster, one or more, from which the store learns of all; `host` and `port`
  /// are not used then, and `unix_socket`, `sentinel` and `database` must not be set. Empty: there
  /// is no cluster.
  std::vector<RedisAddress> cluster{};

  std::string username{};  ///< needs a password as well; empty means the default user
  Secret password{};       ///< empty means no AUTH
  /// Supplies user and password at each login, for credentials that expire; the two above are to be
  /// empty then. Called on the I/O thread, which it keeps from deciding calls, so it must not block
  /// for long, nor on the store. What it throws makes the login fail.
  std::function<RedisCredentials()> credentials{};
  unsigned database = 0;
  /// Encrypts the connection; without a value it is plain.
  std::optional<RedisTls> tls{};
  std::string client_name = "sluice";  ///< for CLIENT LIST; empty leaves it unset

  /// The timeout of calls without Plan::within(), from the call on. 1 us to 24 h, as every length
  /// of time here.
  Span call_timeout = std::chrono::milliseconds{500};
  /// The timeout of a look-up of the host, and of one attempt to connect to one address, log in and
  /// receive the reply to a PING; then the next address of the name is tried.
  Span connect_timeout = std::chrono::milliseconds{500};
  /// A connection whose oldest request has waited this long for its reply is closed.
  Span stall_timeout = std::chrono::seconds{2};
  /// A connection on which nothing has arrived for this long is checked by a PING before the next
  /// call is sent on it, since a firewall or a load balancer may have dropped it in silence.
  /// Without a reply within half of connect_timeout it is replaced, and the call is sent on the
  /// next one. After such a pause a call takes one more round trip. Nothing is sent while there are
  /// no calls.
  Span check_idle_after = std::chrono::seconds{2};
  /// The pause before the n-th attempt to reconnect is drawn from [0, reconnect_min * 2^n), at most
  /// reconnect_max; n restarts after a connection that decided a call or lasted 100 ms. It counts
  /// from the end of a connection, and from the start of a failed attempt. So an unavailable server
  /// gets 8 attempts a second from each store, on average, and is found at most 250 ms after it is
  /// back, or connect_timeout for each address at which an attempt hangs at that moment, if that is
  /// longer. min <= max.
  Span reconnect_min = std::chrono::milliseconds{10};
  Span reconnect_max = std::chrono::milliseconds{250};

  /// The most calls waiting or in flight at once; more fail with Errc::queue_full. A call that was
  /// sent and has timed out counts until its reply comes or the connection is closed. A call takes
  /// at most 16 KiB. 1 to 2^20.
  std::size_t max_in_flight = 10'000;

  /// A prefix of every key, outside its hash tag: "app1:". No `{`, `}`; at most 64 bytes.
  std::string key_prefix{};
  /// The secret of the hashes of key parts longer than 128 bytes. Processes that share keys must
  /// use the same one.
  HashKey key_secret{};

  /// How the store runs its scripts.
  RedisScripts scripts = RedisScripts::eval;

  /// Called by the I/O thread for each connection, each failed attempt (for an unavailable server,
  /// eight a second by default), each loss, and each change of the master or of the map of a
  /// cluster. It must not block on the store, but may destroy it, after which it is not called
  /// again. What it throws is ignored. The second connection, for wake-ups, causes no events.
  std::function<void(const RedisEvent&)> on_event{};

  /// The generator that seeds the nonces and the jitter; null: SystemRng. Used during construction
  /// only.
  Rng* rng = nullptr;
};

}  // namespace sluice
