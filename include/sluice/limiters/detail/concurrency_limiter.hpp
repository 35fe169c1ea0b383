// How the calls of a ConcurrencyLimiter are made.
#pragma once

#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/detail/lease.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct ConcurrencyLimiter::Verbs {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const ConcurrencyLimiter& jobs, const Key& key,
                                                     Cost weight);

  using Ask = detail::LeaseManager::Asking;

  static Ask try_acquire(const ConcurrencyLimiter& jobs, const Key& key, Cost weight) {
    return jobs.leases_.asking(key, {jobs.limit_.of(key), 0}, weight);
  }
  static Ask try_acquire(const ConcurrencyLimiter& jobs, const Key& key, Cost weight,
                         const LeaseId& id) {
    return jobs.leases_.asking(key, {jobs.limit_.of(key), 0}, weight, id);
  }
  static detail::ReleaseStepVerb release(const ConcurrencyLimiter& jobs, const Key& key,
                                         const LeaseId& id) noexcept {
    return {detail::WakeUp(jobs), [&] {
              return detail::StepVerb<detail::AsReleased>(jobs.store(), jobs.release_step(key, id),
                                                          {});
            }};
  }
  static Step reset_step(const ConcurrencyLimiter& jobs, const Key& key) noexcept {
    return jobs.leases_.reset_step(key, jobs.limit_.of(key));
  }
  static auto reset(const ConcurrencyLimiter& jobs, const Key& key) noexcept {
    return detail::give_back(detail::WakeUp(jobs), jobs.store(), reset_step(jobs, key));
  }
};

}  // namespace sluice
