// The Redis store: limits that all processes on one server share (Redis 7, Valkey 8).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/redis/redis_tls.hpp"
#include "sluice/redis/secret.hpp"
#include "sluice/rng.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// How the store runs its scripts. Both forms decide alike with the same keys, so that stores of
/// both forms share limits.
enum class RedisScripts {
  eval,       ///< EVALSHA; a script that the server lacks is sent to it
  functions,  ///< FCALL of a library (Redis 7.0), for users without EVAL: see docs/failures.md
};

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

/// A store on a Redis server, on the master that Sentinels name (RedisOptions::sentinel), or on a
/// cluster (RedisOptions::cluster); docs/redis.md describes each. All callers share one connection
/// for each server, on which calls of many threads are pipelined automatically. Every plan is one
/// EVALSHA, or one FCALL, decided by the clock of its server.
///
/// A call ends in one of these ways:
/// - decided: the reply came, with the nonce of its request;
/// - an error that equals Failure::not_executed: it was never sent, or the server did not run it;
/// - an error that equals Failure::unknown: it was sent, and the deadline passed or the connection
///   broke before its reply, or the server replied with an unknown error. It is not retried,
///   because it may have been charged.
///
/// A call counts as sent when the system has accepted a byte of it. A call of which it accepted
/// none when the connection ended is sent on the next connection.
///
/// Temporary errors of the server (Errc::loading, read_only, master_down, try_again, cluster_down)
/// are retried until the call's deadline; then the call fails with that error, or as unknown if a
/// retry had just been sent. The n-th pause is drawn from 5 ms to 5 ms * 2^n, at most 100 ms; in a
/// pause a call counts as in flight, can be cancelled, and is not executed.
///
/// A script that the server has lost is loaded and the call repeated, which is safe because it was
/// not executed. The library of functions is loaded in the same way, if the user may load it; if
/// not, the call fails with Errc::no_function, and behind a proxy that hides an older server with
/// Errc::unknown_command.
///
/// Other errors of the server (busy, out_of_memory...) fail a call at once; see Errc. After
/// READONLY or MASTERDOWN the store reconnects, and looks the name up or asks the Sentinels again.
///
/// In a cluster, MOVED and ASK send a call to another node, up to 5 times. The keys of a plan must
/// have one tag, or it fails with Errc::cross_slot and its step. Without RedisOptions::cluster,
/// MOVED and ASK fail the call with Errc::moved and Errc::ask.
///
/// The addresses of a name are tried in the order of the look-up. One that cannot be reached,
/// refuses the login, or whose server replies READONLY, MASTERDOWN, LOADING, invalid data or
/// nothing, moves to the end, and the store tries the next one. So it finds the master among its
/// replicas. A look-up that fails, or takes longer than 50 ms, keeps the previous addresses, also
/// those of Sentinels and nodes of a cluster.
///
/// A server older than 7.0 is rejected at login, by the version in the reply to HELLO or else INFO.
/// A server that does not report its version, as behind some proxies, is accepted. One that ends
/// two connections in a row at HELLO, as twemproxy does, is used without HELLO, INFO, CLIENT
/// SETNAME, SCRIPT LOAD, PUBLISH and SUBSCRIBE: there are no wake-ups. (Not behind Sentinels or in
/// a cluster.)
///
/// Connection failures are in RedisStats::last_failure, RedisOptions::on_event, and the exception
/// of a call that failed because of them.
///
/// Permissions that the user needs on the server, and no others: `~<key_prefix>* +evalsha +eval
/// +time +get +mget +psetex +setrange +getrange +pexpire` (PEXPIRE with GT: Redis 7 or Valkey);
/// with functions `+fcall` in the place of `+evalsha +eval`, and `+function|load` for loading them.
/// With `+script|load` a lost script is loaded once instead of sent again with each call that
/// misses it; `+ping` and `+client|setname` are used at login and are optional; `+select` if
/// `database` is not 0; `+publish +subscribe +unsubscribe &<key_prefix>*` for wake-ups;
/// `+cluster|slots` in a cluster, and `+asking` while slots move; `+role` behind Sentinels if the
/// server does not know HELLO, which every user may send. On the Sentinels:
/// `+sentinel|get-master-addr-by-name +sentinel|master +sentinel|sentinels +subscribe
/// &+switch-master`. A call with a command or key that the user may not use fails with
/// Errc::no_permission.
///
/// A plan with an id (Plan::idempotent) that failed with Failure::unknown may be retried under its
/// id, here or on another store of the same server: it is charged once. The store itself never
/// retries a call that may have been executed.
///
/// Wake-ups: notify() is a PUBLISH to the channel that has the key's name, after the calls on the
/// same connection, without waiting for its reply. While there are subscriptions, and a second
/// longer, a second connection listens; subscriptions to one key share a SUBSCRIBE, and `seen` is
/// called on the I/O thread and may destroy the store. Wake-ups are lost silently without a
/// connection, without the permissions (tried again after 30 s), and beyond 1024 at once.
///
/// Bounds on admitted units (capacity C, rate r): C + r * t in t seconds while the server runs;
/// plus C and all reservations for each crash that loses its data, and for each failover to a
/// replica; docs/failures.md has all bounds.
///
/// Threads: the store has one I/O thread, which completes calls. A completion must not block on
/// this store (Errc::would_deadlock), but may make calls and may destroy the store. The thread
/// handles no signals of the program. A caller may write its request to an idle connection itself;
/// the I/O thread then waits for it. Usable from any thread; not across fork(): in the child every
/// call fails with Errc::forked. clock() is the local clock: the server's clock decides, and
/// Decision::at is its time.
class RedisStore : public Store {
 public:
  /// Thread-safe. The values are read one by one, not at one instant.
  [[nodiscard]] virtual RedisStats stats() const noexcept = 0;

  /// What is known of the servers; it does not wait. Sends INFO to each connected server if the
  /// latest was sent a second ago or more, so that the next health() knows its reply. Needs `+info`
  /// for `maxmemory_policy` and `evicted_keys`. Thread-safe. May throw std::bad_alloc.
  [[nodiscard]] virtual RedisHealth health() const = 0;
};

/// Makes a store; does not wait for a connection. Throws std::invalid_argument if an option is out
/// of range or asks for TLS in a build without OpenSSL, std::system_error if no thread can be
/// started or the process is out of descriptors. Destroying the store fails every pending call at
/// once; a pending look-up ends by itself, on a detached thread.
[[nodiscard]] NewStore<RedisStore> make_redis_store(RedisOptions options = {});

/// The text of the library for RedisScripts::functions, as FUNCTION LOAD takes it; also installed
/// as share/sluice/redis_functions.lua. Its name and those of its functions contain a digest of the
/// text, so that libraries of several versions of Sluice coexist. The first call makes the text,
/// and may throw std::bad_alloc; the text stays valid for the life of the program.
[[nodiscard]] std::string_view redis_functions();

}  // namespace sluice
