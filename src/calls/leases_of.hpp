// The leases among what a call was granted.
#pragma once

#include "sluice/calls/grants.hpp"
#include "sluice/limiters/lease.hpp"

namespace sluice::detail {

/// Calls `visit(lease, its claim)`.
template <class Visit>
void for_each_lease(const Grants& grants, const Visit& visit) {
  for (const auto& limit : grants.limits()) {
    auto* const lease = static_cast<Lease*>(limit->grant(&type_tag<Lease>));
    if (lease != nullptr) visit(*lease, *limit);
  }
}

}  // namespace sluice::detail
