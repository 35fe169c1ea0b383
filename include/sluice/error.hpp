// Error codes. A refusal is not an error: it is a Decision.
#pragma once

#include <string>
#include <system_error>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// The reason why a call failed. The numbers are part of the protocol with the scripts and do not
/// change. Every code belongs to exactly one of the two conditions of `Failure`.
enum class Errc {
  // The request is invalid. Nothing was sent.
  cost_exceeds_capacity = 1,  ///< this cost can never be admitted by this quota
  invalid_cost = 2,           ///< negative, or above 2^52
  invalid_key = 3,            ///< an empty tag or name, or a part longer than 1 MiB
  duplicate_key = 4,          ///< a plan uses one key twice
  invalid_plan = 5,           ///< a plan has no step, or more than Plan::max_steps
  unsupported_operation = 6,  ///< the store does not support the operation
  would_deadlock = 7,  ///< a blocking call on the store's own I/O thread, or a wait without an end

  // The store could not take the request. Nothing was executed.
  store_full = 8,      ///< no memory for the state of this key, nor for its overflow
  queue_full = 9,      ///< too many calls in flight
  not_connected = 10,  ///< no connection to the server within the deadline
  timed_out = 11,      ///< the deadline passed before the request was sent
  cancelled = 12,      ///< cancelled before the request was sent
  shut_down = 13,      ///< the store was destroyed
  forked = 14,         ///< the store was made before a fork, in another process

  // The key holds something else. Nothing was changed.
  wrong_type = 15,     ///< the key holds something that this library did not write
  wrong_kind = 16,     ///< the key holds the state of another algorithm or version
  corrupt_state = 17,  ///< the key holds a state with impossible values

  // Error replies of the server. Nothing was executed.
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
  not_configured = 39,    ///< no configuration is stored under the key, or it has expired
  config_changed = 40,    ///< the configuration has changed since the caller last read it
  outside_calendar = 41,  ///< the store's clock is outside the windows in the request

  // Waiting. Nothing was charged, or it was refunded.
  too_many_waiters = 42,  ///< the wait queue is full: rejected, or dropped from it

  // More about the request itself. Nothing was changed.
  id_reused = 43,  ///< the request id was used for a plan of other keys or operations

  other_store = 49,  ///< a step belongs to a limiter on another store than the one that is asked

  lease_not_live = 47,  ///< no live lease of the key has the id: released or expired

  // The store was not called. Nothing was changed.
  circuit_open = 44,  ///< the circuit breaker is open, and the policy cannot answer the request

  // Error replies of the server about functions. Nothing was executed.
  no_function = 45,      ///< the library of redis_functions() is not loaded
  unknown_command = 46,  ///< the server does not support functions: Redis 7.0 or later does

  // There is no connection to the server. Nothing was executed.
  tls_failed = 48,  ///< the TLS handshake failed: a certificate, a name, or a server without TLS

  // The request was sent; whether it was executed is unknown.
  server_error = 35,    ///< another error reply, as of a proxy or of an aborted script
  unknown = 36,         ///< no reply: deadline, cancellation or lost connection after sending
  protocol_error = 37,  ///< an invalid reply; the connection was closed
};

/// Whether a failed request may have been executed. Compare: `error == Failure::unknown`.
enum class Failure {
  not_executed = 1,  ///< it was not executed: a retry is safe
  unknown,           ///< it may have been executed: a retry may charge twice
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
