// The Redis store: limits shared by every process that uses the same server (Redis 7, Valkey 8).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/error.hpp"
#include "sluice/redis/redis_tls.hpp"
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

/// The steps on the way to a connection, and what comes behind them.
enum class RedisStep : std::uint8_t {
  look_up,  ///< of the addresses of RedisOptions::host
  connect,  ///< to one of them
  tls,      ///< the handshake, with RedisOptions::tls
  login,    ///< AUTH, the server's version, the client's name, PING
  select,   ///< of RedisOptions::database
  serve,    ///< the connection is there
};

/// A connection was made, was not made, or was lost.
struct RedisEvent {
  enum class Kind : std::uint8_t {
    connected,
    failed,  ///< an attempt at one address, or a look-up; the next one follows by itself
    lost,    ///< a connection that was there
  };
  Kind kind = Kind::failed;
  RedisStep step = RedisStep::look_up;  ///< that failed
  /// "127.0.0.1:6379", "[::1]:6379", the path of a unix socket; of a look-up "name:6379".
  std::string address{};
  /// Why, in the words of the system or the server: printable ASCII, at most 203 bytes. What it has
  /// in common with the user or the password, from 4 bytes on, is struck out. Empty if connected.
  std::string cause{};
  /// What calls end with that wait until their deadline; none if connected.
  std::error_code error{};

  /// "login at 127.0.0.1:6379: WRONGPASS invalid username-password pair or user is disabled."
  [[nodiscard]] std::string text() const;
};

/// What AUTH tells the server.
struct RedisCredentials {
  std::string username{};  ///< needs a password as well; empty means the default user
  Secret password{};       ///< empty means no AUTH
};

/// Where the server is and what the store may spend on it. parse_redis_url() reads the first of
/// them from one line (sluice/redis/redis_url.hpp).
struct RedisOptions {
  /// Name or address of the server; not used if `unix_socket` is set.
  std::string host = "127.0.0.1";
  std::uint16_t port = 6379;
  /// Path of a unix socket; empty means TCP.
  std::string unix_socket{};

  std::string username{};  ///< needs a password as well; empty means the default user
  Secret password{};       ///< empty means no AUTH
  /// Supplies user and password at each login, for credentials that expire; the two above are to be
  /// empty then. Called on the I/O thread, which it keeps from deciding calls, so it must not block
  /// for long, nor on the store. What it throws makes the login fail.
  std::function<RedisCredentials()> credentials{};
  unsigned database = 0;
  /// Encrypts the connection; without a value it is plain.
  std::optional<RedisTls> tls{};
  std::string client_name = "sluice";  ///< what CLIENT LIST shows; empty leaves it unset

  /// How long a call may take that does not say Plan::within(), counted from the call.
  /// 1 us to 24 h, as every length of time here.
  Span call_timeout = std::chrono::milliseconds{500};
  /// How long a look-up of the host may take, and then one attempt to connect to one address, to
  /// log in and to be answered a PING; then the next address of the name is tried.
  Span connect_timeout = std::chrono::milliseconds{500};
  /// A connection whose oldest request has waited this long for its reply is given up.
  Span stall_timeout = std::chrono::seconds{2};
  /// The pause before the n-th attempt to reconnect is drawn from [0, reconnect_min * 2^n), capped
  /// at reconnect_max; n starts anew behind a connection that decided a call or held for 100 ms. It
  /// counts from the end of a connection, and from the beginning of an attempt that failed. So a
  /// server that is away gets 8 attempts a second from each store, on average, and is found 250 ms
  /// after it is back at the latest, or connect_timeout for each address at which an attempt hangs
  /// just then. min <= max.
  Span reconnect_min = std::chrono::milliseconds{10};
  Span reconnect_max = std::chrono::milliseconds{250};

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

  /// Told of each connection, of each attempt that failed (with a server that is gone, eight a
  /// second by default), and of each loss, by the I/O thread. Must not throw,
  /// nor block on the store, but may destroy it; it is not called after that. The second
  /// connection, which listens for wake-ups, is not told of.
  std::function<void(const RedisEvent&)> on_event{};

  /// Seeds the nonces and the jitter; null means SystemRng. Used during construction only.
  Rng* rng = nullptr;
};

/// What a Redis store has seen. Counters only rise. In a forked child the last two stay empty.
struct RedisStats {
  std::uint64_t calls = 0;            ///< plans handed to the store
  std::uint64_t connections = 0;      ///< successful connects, the first one included
  std::uint64_t unknown = 0;          ///< calls that ended with Failure::unknown
  std::uint64_t late_replies = 0;     ///< replies to calls that had already timed out
  std::uint64_t scripts_loaded = 0;   ///< or the library, as often as this store has loaded it
  std::uint64_t protocol_errors = 0;  ///< connections dropped because an answer made no sense
  /// Watched keys that the server has agreed to tell of; again with each new connection.
  std::uint64_t subscriptions = 0;
  std::uint64_t failed_attempts = 0;         ///< look-ups, and attempts at one address, that failed
  std::optional<RedisEvent> last_failure{};  ///< the latest that failed or was lost
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
/// Sent is a call of which the system took a byte. One of which it took none when the connection
/// ended goes out on the next one.
///
/// What the server refuses for now (Errc::loading, read_only, master_down, try_again, cluster_down)
/// is asked again until the call's deadline, and then ends with that error, or as unknown if it was
/// on its way just then. The n-th pause is drawn from 5 ms to 5 ms * 2^n, at most 100 ms; a call
/// counts as in flight meanwhile, can be cancelled, and is not executed.
///
/// A script that the server has lost is loaded and the call repeated, which is safe: it did not
/// run. So is the library of functions, if the user may; if not, the call ends with
/// Errc::no_function, and behind a proxy that hides an older server with Errc::unknown_command.
///
/// Errors from outside the plan (Errc::moved, busy, out_of_memory...) are the server's own words,
/// see Errc; those that do not pass end a call at once. After READONLY or MASTERDOWN the store
/// reconnects and looks the name up anew. Redis cluster and Sentinel are not supported yet.
///
/// A name with several addresses: they are tried in the order of the look-up. One that is not
/// reached, that refuses the login, or whose server answers READONLY, MASTERDOWN, LOADING, nonsense
/// or nothing goes to the end, and the store goes on to the next. So it finds the master beside its
/// replicas. A look-up that fails, or takes longer than 50 ms, leaves the addresses found before.
///
/// A server older than 7.0 is refused at login, as HELLO or else INFO tells its version. One that
/// tells none, as behind some proxies, is believed.
///
/// Why there is no connection: RedisStats::last_failure, RedisOptions::on_event, and the text of
/// the exception of a call that ended for it.
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
/// A plan with an id (Plan::idempotent) that ended in Failure::unknown may be asked again under it,
/// here or on another store of the same server: it is charged once. The store itself asks nothing
/// twice that may have run.
///
/// Wake-ups: notify() is a PUBLISH to the channel that has the key's name, behind the calls, on the
/// same connection; nobody waits for its reply. While somebody watches, and a second longer, a
/// second connection listens; several watches of a key share a subscription, `seen` is called on
/// the I/O thread and may destroy the store. Lost without a word: without a connection, without the
/// rights (asked again after 30 s), beyond 1024 at once.
///
/// Bounds on what is admitted (capacity C, rate r): C + r * t in t seconds while the server lives;
/// C and what was granted ahead more for each crash that loses its data, and for each failover to a
/// replica; docs/failures.md has them all.
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
/// out of range, or asks for TLS in a build without OpenSSL; std::system_error if no thread can be
/// started. Destroying the store ends every call at once; a look-up that is under way ends by
/// itself, on a thread that is left to it.
[[nodiscard]] std::unique_ptr<RedisStore> make_redis_store(RedisOptions options = {});

/// The library that stores with RedisScripts::functions call, as FUNCTION LOAD takes it; installed
/// as share/sluice/redis_functions.lua too. Its name and those of its functions hold a digest of
/// the text, so that libraries of several versions of Sluice live side by side. The first
/// call joins it, and may throw std::bad_alloc; the text stays as long as the program runs.
[[nodiscard]] std::string_view redis_functions();

}  // namespace sluice
