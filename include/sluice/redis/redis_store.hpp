// The Redis store: limits that all processes on one server share (Redis 7, Valkey 8).
#pragma once

#include <functional>
#include <string_view>

#include "sluice/observer.hpp"
#include "sluice/redis/redis_options.hpp"
#include "sluice/redis/redis_stats.hpp"
#include "sluice/store.hpp"

namespace sluice {

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

/// For RedisOptions::on_event: tells the observer of connections, failures and losses, and of
/// another master or map, as those of the store of this name. REQUIRES: the observer outlives the
/// store.
[[nodiscard]] std::function<void(const RedisEvent&)> observe_connections(Observer& observer,
                                                                         std::string_view store);

/// The text of the library for RedisScripts::functions, as FUNCTION LOAD takes it; also installed
/// as share/sluice/redis_functions.lua. Its name and those of its functions contain a digest of the
/// text, so that libraries of several versions of Sluice coexist. The first call makes the text,
/// and may throw std::bad_alloc; the text stays valid for the life of the program.
[[nodiscard]] std::string_view redis_functions();

}  // namespace sluice
