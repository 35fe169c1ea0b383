// acquire(): waiting for several limits at once.
#pragma once

#include <initializer_list>
#include <span>

#include "sluice/calls/claim.hpp"
#include "sluice/calls/grants.hpp"
#include "sluice/wait_options.hpp"

namespace sluice {

/// Waits until all claims are granted at one instant, or until the deadline; blocks this thread
/// meanwhile. Nothing is charged before.
///
///     const Grants granted = acquire({{requests, "alice"}, {tokens, "alice", 800}}, 10s);
///
/// Limiters, slot locks, leases and gates may be mixed, 1 to Plan::max_steps of them, all on one
/// store; on a Redis cluster, under one tag. A gate that closes during the wait holds the call
/// back. One claim waits as the acquire() of its limiter. With several, a grant costs at most two
/// store operations while the limits are those of this process alone: the calls queue at the limit
/// that refuses, first come, first served among all that claim of it here, and ask at its exact
/// hint. For one order over all processes, set WaitQueueOptions::across_processes; see
/// docs/waiting.md.
///
/// A wait that cannot succeed by the deadline is refused at once. Throws std::invalid_argument for
/// claims that are not on one store, and std::system_error as the acquire() of a limiter:
/// Errc::invalid_plan if two claims are of one key, Errc::cross_slot for two tags of a cluster.
[[nodiscard]] Grants acquire(std::span<const Claim> claims, const Deadline& deadline,
                             const WaitOptions& options = {});
[[nodiscard]] inline Grants acquire(std::initializer_list<Claim> claims, const Deadline& deadline,
                                    const WaitOptions& options = {}) {
  return acquire(std::span(claims.begin(), claims.size()), deadline, options);
}
/// The same without std::system_error. Claims that are not on one store are Errc::invalid_plan.
[[nodiscard]] Grants acquire(std::span<const Claim> claims, const Deadline& deadline,
                             const WaitOptions& options, std::error_code& error) noexcept;
[[nodiscard]] inline Grants acquire(std::initializer_list<Claim> claims, const Deadline& deadline,
                                    const WaitOptions& options, std::error_code& error) noexcept {
  return acquire(std::span(claims.begin(), claims.size()), deadline, options, error);
}

}  // namespace sluice
