// The names of the error codes in fault scripts, recordings and metrics.
#include "src/core/error_names.hpp"

#include <array>

namespace sluice::detail {
namespace {

constexpr std::array names{
    NamedError{Errc::cost_exceeds_capacity, "cost_exceeds_capacity"},
    NamedError{Errc::invalid_cost, "invalid_cost"},
    NamedError{Errc::invalid_key, "invalid_key"},
    NamedError{Errc::duplicate_key, "duplicate_key"},
    NamedError{Errc::invalid_plan, "invalid_plan"},
    NamedError{Errc::unsupported_operation, "unsupported_operation"},
    NamedError{Errc::would_deadlock, "would_deadlock"},
    NamedError{Errc::store_full, "store_full"},
    NamedError{Errc::queue_full, "queue_full"},
    NamedError{Errc::not_connected, "not_connected"},
    NamedError{Errc::timed_out, "timed_out"},
    NamedError{Errc::cancelled, "cancelled"},
    NamedError{Errc::shut_down, "shut_down"},
    NamedError{Errc::forked, "forked"},
    NamedError{Errc::wrong_type, "wrong_type"},
    NamedError{Errc::wrong_kind, "wrong_kind"},
    NamedError{Errc::corrupt_state, "corrupt_state"},
    NamedError{Errc::no_script, "no_script"},
    NamedError{Errc::loading, "loading"},
    NamedError{Errc::read_only, "read_only"},
    NamedError{Errc::moved, "moved"},
    NamedError{Errc::ask, "ask"},
    NamedError{Errc::try_again, "try_again"},
    NamedError{Errc::cluster_down, "cluster_down"},
    NamedError{Errc::cross_slot, "cross_slot"},
    NamedError{Errc::no_replicas, "no_replicas"},
    NamedError{Errc::out_of_memory, "out_of_memory"},
    NamedError{Errc::master_down, "master_down"},
    NamedError{Errc::busy, "busy"},
    NamedError{Errc::misconfigured, "misconfigured"},
    NamedError{Errc::no_auth, "no_auth"},
    NamedError{Errc::wrong_password, "wrong_password"},
    NamedError{Errc::no_permission, "no_permission"},
    NamedError{Errc::too_many_clients, "too_many_clients"},
    NamedError{Errc::invalid_argument, "invalid_argument"},
    NamedError{Errc::not_configured, "not_configured"},
    NamedError{Errc::config_changed, "config_changed"},
    NamedError{Errc::outside_calendar, "outside_calendar"},
    NamedError{Errc::too_many_waiters, "too_many_waiters"},
    NamedError{Errc::id_reused, "id_reused"},
    NamedError{Errc::lease_not_live, "lease_not_live"},
    NamedError{Errc::other_store, "other_store"},
    NamedError{Errc::circuit_open, "circuit_open"},
    NamedError{Errc::no_function, "no_function"},
    NamedError{Errc::unknown_command, "unknown_command"},
    NamedError{Errc::tls_failed, "tls_failed"},
    NamedError{Errc::server_error, "server_error"},
    NamedError{Errc::unknown, "unknown"},
    NamedError{Errc::protocol_error, "protocol_error"},
};

}  // namespace

std::span<const NamedError> error_names() noexcept { return names; }

std::string_view find_name(Errc code) noexcept {
  for (const NamedError& named : names) {
    if (named.code == code) return named.name;
  }
  return {};
}

std::optional<Errc> find_errc(std::string_view name) noexcept {
  for (const NamedError& named : names) {
    if (named.name == name) return named.code;
  }
  return {};
}

}  // namespace sluice::detail
