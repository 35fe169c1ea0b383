// How acquire() of the limiters over keys waits.
#pragma once

#include "sluice/limiters/keyed_limiter.hpp"

namespace sluice {

/// How acquire() waits; see detail::WaiterFor. Each limiter derives its own, which refunds a
/// grant; those that can reserve also replace step() and grant().
template <class Limiter>
struct KeyedLimiter<Limiter>::Waiting {
  using Grant = Decision;
  using Request = detail::KeyedRequest;
  static constexpr bool freed_early = false;
  static Request request(const KeyedLimiter&, const Key& key, Cost cost) { return {key, cost}; }
  static Key key(const KeyedLimiter& limiter, const Request& request) noexcept {
    return limiter.named(request.key());
  }
  static const std::shared_ptr<detail::WaitQueues>& queues(const KeyedLimiter& limiter) noexcept {
    return limiter.queues();
  }
  static void borrow_store(KeyedLimiter& limiter) noexcept { limiter.store_.borrow(); }
  static Step step(const KeyedLimiter& limiter, const Request& request) noexcept {
    return limiter.self().acquire_step(request.key(), request.cost);
  }
  static Grant grant(const KeyedLimiter&, const Request&, const Outcome& outcome, Time) noexcept {
    return outcome.decision;
  }
};

}  // namespace sluice
