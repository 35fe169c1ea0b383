// The Redis store: limits shared by every process that uses the same server (Redis 7, Valkey 8).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sluice/redis/secret.hpp"
#include "sluice/rng.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// How the store runs its scripts. Both decide alike, under the same keys: stores of either kind
/// share limits.
enum class RedisScripts {
  eval,       ///< EVALSHA, and whatever the server lacks is sent to it
  functions,  ///< FCALL of a library (Redis 7.0), for users without EVAL: docs/failures.md, Rights
};

/// Where the server is and what the store may spend on it.
struct RedisOptions {
  /// Name or address of the server; not used if `unix_socket` is set.
  std::string host = "127.0.0.1";
  std::uint16_t port = 6379;
  /// Path of a unix socket; empty means TCP.
  std::string unix_socket{};

  std::string username{};  ///< needs a password as well; empty means the default user
  Secret password{};       ///< empty means no AUTH
  unsigned database = 0;
  std::string client_name = "sluice";  ///< what CLIENT LIST shows; empty leaves it unset

  /// How long a call may take that does not say Plan::within(), counted from the call.
  /// 1 us to 24 h, as every length of time here.
  Span call_timeout = std::chrono::milliseconds{500};
  /// How long one attempt to connect to one address, to log in and to be answered a PING may take;
  /// then the next address of the name is tried.
  Span connect_timeout = std::chrono::milliseconds{500};
  /// A connection whose oldest request has waited this long for its reply is given up.
  Span stall_timeout = std::chrono::seconds{2};
  /// The pause before the n-th attempt to reconnect is drawn from [0, reconnect_min * 2^n), capped
  /// at reconnect_max. min <= max.
  Span reconnect_min = std::chrono::milliseconds{10};
  Span reconnect_max = std::chrono::seconds{1};

  /// Calls waiting or in flight at once; one more ends in Errc::queue_full. A call that was sent
  /// and has timed out counts until its reply comes or the connection is given up. A call takes at
  /// most 16 KiB. 1 to 2^20.
  std::size_t max_in_flight = 10'000;

  /// Put in front of every key, outside of its hash tag: "app1:". No `{`, `}`; at most 64 bytes.
  std::string key_prefix{};
  /// Hashes key parts longer than 128 bytes. Processes that share keys must use the same secret.
  HashKey key_secret{};

  /// How scripts are run.
  RedisScripts scripts = RedisScripts::eval;

  /// Seeds the nonces and the jitter; null means SystemRng. Used during construction only.
  Rng* rng = nullptr;
};

/// What a Redis store has seen. Counters only rise.
struct RedisStats {
  std::uint64_t calls = 0;            ///< plans handed to the store
  std::uint64_t connections = 0;      ///< successful connects, the first one included
  std::uint64_t unknown = 0;          ///< calls that ended with Failure::unknown
  std::uint64_t late_replies = 0;     ///< replies to calls that had already timed out
  std::uint64_t scripts_loaded = 0;   ///< or the library, as often as this store has loaded it
  std::uint64_t protocol_errors = 0;  ///< connections dropped because an answer made no sense
  /// Watched keys that the server has agreed to tell of; again with each new connection.
  std::uint64_t subscriptions = 0;
};

/// A store on one Redis server, through one connection that all callers share; calls of many
/// threads are pipelined by themselves. Every plan is one EVALSHA, or one FCALL, under the server's
/// clock.
///
/// How a call ends:
/// - decided: the reply came, with the nonce of its request;
/// - an error that equals Failure::not_executed: it was never sent, or the server did not run it;
/// - an error that equals Failure::unknown: it was sent, and the deadline passed or the connection
///   broke before its reply, or the server answered with an error word that is not known. It is not
///   asked again, since it may have been charged.
/// A script that the server has lost is loaded and the call repeated, which is safe: it did not
/// run. So is the library of functions, if the user may; if not, the call ends with
/// Errc::no_function, and without functions (Redis 6) with Errc::unknown_command.
///
/// Errors from outside the plan (Errc::moved, loading, read_only, out_of_memory...) are the
/// server's own words, see Errc. After READONLY or MASTERDOWN the store reconnects and resolves the
/// name anew. Redis cluster, Sentinel and TLS are not supported yet.
///
/// Rights that the user needs on the server, and no others:
/// `~<key_prefix>* +evalsha +eval +time +get +mget +psetex +setrange +getrange +pexpire` (PEXPIRE
/// with GT: Redis 7 or Valkey); with functions `+fcall` in the place of `+evalsha +eval`, and
/// `+function|load` for who may load them. With `+script|load` a lost script is loaded once instead
/// of sent again with each call that misses it; `+ping` and `+client|setname` are asked at login
/// and done without; `+select` if `database` is not 0; `+publish +subscribe +unsubscribe
/// &<key_prefix>*` for wake-ups. A command or key that the user may not use ends the call with
/// Errc::no_permission.
///
/// A plan with an id (Plan::once) that ended in Failure::unknown may be asked again under it, here
/// or on another store of the same server: it is charged once. The store itself asks nothing twice.
///
/// Wake-ups: notify() is a PUBLISH to the channel that has the key's name, behind the calls, on the
/// same connection; nobody waits for its reply. While somebody watches, and a second longer, a
/// second connection listens; several watches of a key share a subscription, `seen` is called on
/// the I/O thread and may destroy the store. Lost without a word: without a connection, without the
/// rights (asked again after 30 s), beyond 1024 at once.
///
/// Bounds on what is admitted (capacity C, rate r): C + r * t in t seconds while the server lives;
/// C more for each crash that loses its data, and for each failover to a replica.
///
/// Threads: one I/O thread of its own, which completes calls: a completion must not block on this
/// store (Errc::would_deadlock), but may make calls and may destroy the store. Signals of the
/// program are never handled there. A caller may write its request to an idle connection itself,
/// for which the I/O thread then waits. Usable from any thread; not across fork(): in the child
/// every call ends in Errc::forked. The clock() is the local one: the server's clock decides, and
/// Decision::at is its time.
class RedisStore : public Store {
 public:
  /// Thread-safe; the figures are read one by one.
  [[nodiscard]] virtual RedisStats stats() const noexcept = 0;
};

/// Starts the store; does not wait for a connection. Throws std::invalid_argument if an option is
/// out of range, std::system_error if no thread can be started. Destroying the store ends every
/// call at once, but waits for the system's resolver if a name is being looked up just then.
[[nodiscard]] std::unique_ptr<RedisStore> make_redis_store(RedisOptions options = {});

/// The library that stores with RedisScripts::functions call, as FUNCTION LOAD takes it; installed
/// as share/sluice/redis_functions.lua too. Its name and those of its functions hold a digest of
/// the text, so that libraries of several versions of Sluice live side by side.
[[nodiscard]] std::string_view redis_functions() noexcept;

}  // namespace sluice
