// How the calls of a FleetShedder are made.
#pragma once

#include "sluice/limiters/detail/lease.hpp"
#include "sluice/limiters/fleet_shedder.hpp"

namespace sluice {

/// Verbs of the calls; see sluice/detail/verb.hpp. An unknown tier is Errc::invalid_argument.
struct FleetShedder::Verbs {
  using Ask = detail::LeaseManager::Asking;

  static Ask try_acquire(const FleetShedder& fleet, detail::TextArg tier, Cost weight) {
    const Share share = fleet.find(tier);
    if (share.limit == 0) return {fleet.leases_, Errc::invalid_argument};
    return fleet.leases_.asking(fleet.key(), share, weight);
  }
  static Ask try_acquire(const FleetShedder& fleet, detail::TextArg tier, Cost weight,
                         const LeaseId& id) {
    const Share share = fleet.find(tier);
    if (share.limit == 0) return {fleet.leases_, Errc::invalid_argument};
    return fleet.leases_.asking(fleet.key(), share, weight, id);
  }
  static detail::StepVerb<detail::AsDecision> peek(const FleetShedder& fleet, detail::TextArg tier,
                                                   Cost weight) {
    const Share share = fleet.find(tier);
    if (share.limit == 0) return {fleet.store(), {}, {}, Errc::invalid_argument};
    return {fleet.store(), fleet.leases_.peek_step(fleet.key(), share, weight), {}};
  }
  static Step block(const FleetShedder& fleet, Span span) {
    return fleet.leases_.block_step(fleet.key(), fleet.capacity_, span);
  }
  static Step reset(const FleetShedder& fleet) {
    return fleet.leases_.reset_step(fleet.key(), fleet.capacity_);
  }
};

}  // namespace sluice
