// How the calls of a SlotLock are made.
#pragma once

#include <algorithm>

#include "sluice/detail/gives_back.hpp"
#include "sluice/limiters/slot_lock.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct SlotLock::Verbs : detail::GiveBackVerbs<> {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const SlotLock& lock, const Key& key,
                                                     Cost cost);

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
  using Cancel = detail::GivesBack<detail::StepVerb<AsSlots>, detail::WhenUnits>;

  static Reserve reserve(const SlotLock& lock, const Key& key, Span max_wait);
  static Reserve try_acquire(const SlotLock& lock, const Key& key) {
    return reserve(lock, key, Span{0});
  }
  static Cancel cancel(const SlotLock& lock, const Key& key, const SlotPermit& permit) {
    return {detail::WakeUp(lock), [&]() -> detail::StepVerb<AsSlots> {
              if (!permit) return {lock.store(), {}, {}};
              return {lock.store(), lock.cancel_step(key, permit), {}};
            }};
  }
};

}  // namespace sluice
