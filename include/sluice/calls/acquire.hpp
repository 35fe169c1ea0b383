// acquire(): waiting for several limits at once.
#pragma once

#include <initializer_list>
#include <span>

#include "sluice/calls/claim.hpp"
#include "sluice/calls/first_of.hpp"
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
/// back. One claim waits as the acquire() of its limiter. Several wait in the queue of the limit
/// that refuses, first come, first served among all that claim of it in this process (and in all
/// processes, where WaitQueueOptions::across_processes has an effect), and ask at its exact hint.
/// A grant costs one or two store operations while nobody else waits for the same limits; what else
/// it costs is in docs/waiting.md.
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

/// Waits until one of several alternatives is granted; see FirstOf.
[[nodiscard]] Grants acquire(const FirstOf& alternatives, const Deadline& deadline,
                             const WaitOptions& options = {});
[[nodiscard]] Grants acquire(const FirstOf& alternatives, const Deadline& deadline,
                             const WaitOptions& options, std::error_code& error) noexcept;

}  // namespace sluice
