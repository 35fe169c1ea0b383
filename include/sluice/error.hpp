// Why a call failed. A refusal is not an error: it is a Decision.
#pragma once

#include <string>
#include <system_error>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// What went wrong. The numbers are part of the protocol with the scripts and do not change. Every
/// code belongs to exactly one of the two conditions of `Failure`.
enum class Errc {
  // The request itself. Nothing was sent.
  cost_exceeds_capacity = 1,  ///< this cost can never be admitted by this quota
  invalid_cost = 2,           ///< units below zero, or no whole number up to 2^52
  invalid_key = 3,            ///< an empty tag or name, or a part longer than 1 MiB
  duplicate_key = 4,          ///< the same key twice in one plan
  invalid_plan = 5,           ///< no step, or more than Plan::max_steps
  unsupported_operation = 6,  ///< this store does not know the operation
  would_deadlock = 7,         ///< a blocking call on the store's own I/O thread

  // The store could not take the request. Nothing was executed.
  store_full = 8,      ///< no room for this key's state, nor for its overflow
  queue_full = 9,      ///< too many calls in flight
  not_connected = 10,  ///< no connection to the server within the deadline
  timed_out = 11,      ///< the deadline passed before the request was sent
  cancelled = 12,      ///< cancelled before the request was sent
  shut_down = 13,      ///< the store was destroyed
  forked = 14,         ///< the store was made in another process, before a fork

  // What was found under the key. Nothing was changed.
  wrong_type = 15,     ///< the key holds something that this library did not write
  wrong_kind = 16,     ///< the key holds the state of another algorithm or version
  corrupt_state = 17,  ///< the key holds a state whose values cannot be

  // The server's own words. Nothing was executed.
  no_script = 18,
  loading = 19,
  read_only = 20,
  moved = 21,
  ask = 22,
  try_again = 23,
  cluster_down = 24,
  cross_slot = 25,
  no_replicas = 26,
  out_of_memory = 27,
  master_down = 28,
  busy = 29,
  misconfigured = 30,
  no_auth = 31,
  wrong_password = 32,
  no_permission = 33,
  too_many_clients = 34,

  // More about the request itself. Nothing was changed.
  invalid_argument = 38,  ///< an argument of the request is out of its range
  not_configured = 39,    ///< a limit that lives in the store has not been set, or has expired
  config_changed = 40,    ///< it was changed since the caller last read it
  outside_calendar = 41,  ///< the store's clock lies outside the calendar that the request knows

  // Waiting. Nothing was charged, or it was given back.
  too_many_waiters = 42,  ///< turned away, or dropped, from a line that is full

  // More about the request itself. Nothing was changed.
  id_reused = 43,  ///< its request id was admitted for another plan: other keys or operations

  lease_not_live = 47,  ///< no live lease has the id: given back, lapsed or another key's

  // The store was not asked. Nothing was changed.
  circuit_open = 44,  ///< it has failed too often lately, and the request has no answer without it

  // The server's own words about functions. Nothing was executed.
  no_function = 45,  ///< it lacks the library that redis_functions() gives, and it was not loaded
  unknown_command = 46,  ///< it does not know the command: functions need Redis 7.0

  // No connection to the server. Nothing was executed.
  tls_failed = 48,  ///< the TLS handshake failed: a certificate, a name, or a server without TLS

  // Sent, and it is not known whether it was executed.
  server_error = 35,  ///< an error reply with another word: a proxy's, a script's that broke off
  unknown = 36,       ///< no answer came: deadline, cancellation or a lost connection after sending
  protocol_error = 37,  ///< the answer made no sense; the connection was dropped
};

/// Whether a failed request may have been executed. Compare: `error == Failure::unknown`.
enum class Failure {
  not_executed = 1,  ///< certainly not: it is safe to ask again
  unknown,           ///< perhaps: asking again may charge twice
};

/// The category of Errc, named "sluice".
[[nodiscard]] const std::error_category& error_category() noexcept;
/// The category of Failure, named "sluice.failure".
[[nodiscard]] const std::error_category& failure_category() noexcept;

[[nodiscard]] std::error_code make_error_code(Errc code) noexcept;
[[nodiscard]] std::error_condition make_error_condition(Failure failure) noexcept;

}  // namespace sluice

template <>
struct std::is_error_code_enum<sluice::Errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<sluice::Failure> : std::true_type {};
