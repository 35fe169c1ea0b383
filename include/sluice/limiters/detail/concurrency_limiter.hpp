// How the calls of a ConcurrencyLimiter are made, and how acquire() waits.
#pragma once

#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/detail/lease.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct ConcurrencyLimiter::Verbs {
  using Ask = detail::LeaseManager::Asking;

  static Ask try_acquire(const ConcurrencyLimiter& jobs, const Key& key, Cost weight) {
    return jobs.leases_.asking(key, {jobs.limit_, 0}, weight);
  }
  static Ask try_acquire(const ConcurrencyLimiter& jobs, const Key& key, Cost weight,
                         const LeaseId& id) {
    return jobs.leases_.asking(key, {jobs.limit_, 0}, weight, id);
  }
  static detail::ReleaseByIdVerb release(const ConcurrencyLimiter& jobs, const Key& key,
                                         const LeaseId& id) {
    return {jobs.store(), jobs.release_step(key, id), jobs.queues()};
  }
  static Step reset(const ConcurrencyLimiter& jobs, const Key& key) {
    return jobs.leases_.reset_step(key, jobs.limit_);
  }
};

/// How acquire() waits; see detail::WaiterFor.
struct ConcurrencyLimiter::Waiting {
  using Grant = Lease;
  struct Request : detail::KeyedRequest {
    Request(const Key& key, Cost weight, const LeaseId& drawn)
        : KeyedRequest(key, weight), id(drawn) {}
    LeaseId id;
  };
  static constexpr bool freed_early = true;
  static Request request(const ConcurrencyLimiter& jobs, const Key& key, Cost weight) {
    return {key, weight, jobs.leases_.draw_id()};
  }
  static Key key(const ConcurrencyLimiter& jobs, const Request& request) noexcept {
    return jobs.leases_.named(request.key());
  }
  static const std::shared_ptr<detail::WaitQueues>& queues(
      const ConcurrencyLimiter& jobs) noexcept {
    return jobs.queues();
  }
  static void borrow_store(ConcurrencyLimiter& jobs) noexcept { jobs.leases_.borrow_store(); }
  static Step step(const ConcurrencyLimiter& jobs, const Request& request) noexcept {
    return jobs.leases_.acquire_new_step(request.key(), {jobs.limit_, 0}, request.cost, request.id);
  }
  static Grant grant(const ConcurrencyLimiter& jobs, const Request& request, const Outcome& outcome,
                     Time asked) {
    static constexpr std::array<Word, output> none{};
    return jobs.adopt(request.key(), request.id, request.cost, outcome.decision,
                      outcome.output.empty() ? none : outcome.output, asked);
  }
  static void refund(const ConcurrencyLimiter&, const Request&, Grant& grant,
                     Completion done) noexcept {
    grant.release_later();
    done(Outcome{});
  }
};

}  // namespace sluice
