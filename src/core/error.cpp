// The texts of the error codes.
#include "sluice/error.hpp"

#include "src/util/lasting.hpp"

namespace sluice {
namespace {

const char* text(Errc code) noexcept {
  switch (code) {
    case Errc::cost_exceeds_capacity:
      return "the cost exceeds the capacity: it can never be admitted";
    case Errc::invalid_cost:
      return "the cost is below the least that can be asked for, or no whole number up to 2^52";
    case Errc::invalid_key:
      return "each part of a key must have 1 byte to 1 MiB";
    case Errc::duplicate_key:
      return "the same key occurs twice in one plan";
    case Errc::invalid_plan:
      return "a plan must have 1 to 16 steps";
    case Errc::unsupported_operation:
      return "the store does not know this operation";
    case Errc::would_deadlock:
      return "a blocking call on the store's own I/O thread, or a wait without an end";
    case Errc::store_full:
      return "the store has no room for this key";
    case Errc::queue_full:
      return "too many calls are in flight to the store";
    case Errc::not_connected:
      return "no connection to the store within the deadline";
    case Errc::timed_out:
      return "the deadline passed before the request was sent";
    case Errc::cancelled:
      return "cancelled before the request was sent";
    case Errc::shut_down:
      return "the store was shut down";
    case Errc::forked:
      return "the store belongs to the parent process; make one after the fork";
    case Errc::wrong_type:
      return "the key holds a value that is not a limiter's state";
    case Errc::wrong_kind:
      return "the key holds the state of another algorithm or version";
    case Errc::corrupt_state:
      return "the state under the key is corrupt";
    case Errc::no_script:
      return "the server lost the script (NOSCRIPT)";
    case Errc::loading:
      return "the server is loading its data (LOADING)";
    case Errc::read_only:
      return "the server is a read-only replica (READONLY)";
    case Errc::moved:
      return "the slot is served by another node (MOVED)";
    case Errc::ask:
      return "the slot is migrating to another node (ASK)";
    case Errc::try_again:
      return "the slot is being moved (TRYAGAIN)";
    case Errc::cluster_down:
      return "the cluster is down (CLUSTERDOWN)";
    case Errc::cross_slot:
      return "the keys of the plan are in different slots (CROSSSLOT)";
    case Errc::no_replicas:
      return "the server has too few replicas to write (NOREPLICAS)";
    case Errc::out_of_memory:
      return "the server is out of memory (OOM)";
    case Errc::master_down:
      return "the replica has lost its master (MASTERDOWN)";
    case Errc::busy:
      return "the server is busy with a script (BUSY)";
    case Errc::misconfigured:
      return "the server cannot persist its data (MISCONF)";
    case Errc::no_auth:
      return "the server asks for authentication (NOAUTH)";
    case Errc::wrong_password:
      return "the server refused the user or password (WRONGPASS)";
    case Errc::no_permission:
      return "the server's ACL forbids this (NOPERM)";
    case Errc::too_many_clients:
      return "the server has too many clients";
    case Errc::invalid_argument:
      return "an argument of the request is out of its range";
    case Errc::not_configured:
      return "the limit has not been set in the store, or it has expired";
    case Errc::config_changed:
      return "the limit in the store was changed meanwhile";
    case Errc::outside_calendar:
      return "the store's clock lies outside the calendar of the request";
    case Errc::too_many_waiters:
      return "too many callers wait for this limit already";
    case Errc::id_reused:
      return "the request id was used for another request";
    case Errc::other_store:
      return "the plan was given to another store than that of the limiter which made the step";
    case Errc::lease_not_live:
      return "no lease with this id is live under the key: it was given back, has lapsed, or is "
             "another key's";
    case Errc::circuit_open:
      return "the store has failed too often lately and was not asked";
    case Errc::no_function:
      return "the server lacks the functions: load the library that redis_functions() gives, or "
             "grant +function|load";
    case Errc::unknown_command:
      return "the server, or a proxy before it, does not know the command; functions need Redis "
             "7.0";
    case Errc::tls_failed:
      return "no TLS connection to the server";
    case Errc::server_error:
      return "the server answered with an unknown error: it may have been executed";
    case Errc::unknown:
      return "sent, but no answer came: it may have been executed";
    case Errc::protocol_error:
      return "the answer made no sense: it may have been executed";
  }
  return "unknown error code";
}

bool is_unknown(Errc code) noexcept {
  return code == Errc::server_error || code == Errc::unknown || code == Errc::protocol_error;
}

class ErrorCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "sluice"; }
  [[nodiscard]] std::string message(int value) const override {
    return text(static_cast<Errc>(value));
  }
  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    return make_error_condition(is_unknown(static_cast<Errc>(value)) ? Failure::unknown
                                                                     : Failure::not_executed);
  }
};

class FailureCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "sluice.failure"; }
  [[nodiscard]] std::string message(int value) const override {
    return static_cast<Failure>(value) == Failure::unknown
               ? "it is not known whether it was executed"
               : "it was not executed";
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const detail::Lasting<ErrorCategory> category;
  return category.object;
}

const std::error_category& failure_category() noexcept {
  static const detail::Lasting<FailureCategory> category;
  return category.object;
}

std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

std::error_condition make_error_condition(Failure failure) noexcept {
  return {static_cast<int>(failure), failure_category()};
}

}  // namespace sluice
