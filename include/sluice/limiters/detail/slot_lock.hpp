// How the calls of a SlotLock are made, and how acquire() waits.
#pragma once

#include <algorithm>

#include "sluice/detail/verb.hpp"
#include "sluice/limiters/slot_lock.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct SlotLock::Verbs {
  struct AsPermit {
    SlotPermit operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return lock->permit(outcome.decision, asked);
    }
    const SlotLock* lock;
    Time asked;
  };
  struct AsSlots {
    Word operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return outcome.decision.allowed ? 1 : 0;
    }
  };
  using Reserve = detail::StepVerb<AsPermit>;

  static Reserve reserve(const SlotLock& lock, const Key& key, Span max_wait);
  static Reserve try_acquire(const SlotLock& lock, const Key& key) {
    return reserve(lock, key, Span{0});
  }
  static detail::StepVerb<AsSlots> cancel(const SlotLock& lock, const Key& key,
                                          const SlotPermit& permit) {
    if (!permit) return {lock.store(), {}, {}};
    return {lock.store(), lock.cancel_step(key, permit), {}};
  }
};

/// How acquire() waits; see detail::WaiterFor.
struct SlotLock::Waiting {
  using Grant = SlotPermit;
  using Request = detail::KeyedRequest;
  static constexpr bool freed_early = false;
  static Request request(const SlotLock&, const Key& key, Cost = 1) { return {key, 1}; }
  static Key key(const SlotLock& lock, const Request& request) noexcept {
    return lock.named(request.key());
  }
  static const std::shared_ptr<detail::WaitQueues>& queues(const SlotLock& lock) noexcept {
    return lock.queues();
  }
  static void borrow_store(SlotLock& lock) noexcept { lock.store_.borrow(); }
  static Step step(const SlotLock& lock, const Request& request) noexcept {
    return lock.acquire_step(request.key());
  }
  static Span time_for(const SlotLock& lock, const Request&, Word /*first*/,
                       Word further) noexcept {
    return lock.interval() * std::min(further, word_limit / lock.interval().count());
  }
  static Grant grant(const SlotLock& lock, const Request&, const Outcome& outcome,
                     Time asked) noexcept {
    return lock.permit(outcome.decision, asked);
  }
  static void refund(const SlotLock& lock, const Request& request, Grant& grant,
                     Completion done) noexcept {
    lock.store().execute(lock.cancel_step(request.key(), grant), std::move(done));
  }
};

}  // namespace sluice
