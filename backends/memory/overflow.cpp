// The path of a new key whose sequence has no empty slot. It takes the slot of an idle key, whose
// state is equivalent to an absent one; if there is none, it shares a bucket with other such keys.
//
// All of this happens under the key's stripe, so that a key is never in two slots, and so that what
// it spends from a shared bucket is in the state that it later takes to its own slot.
#include <algorithm>

#include "backends/memory/engine.hpp"
#include "src/util/siphash.hpp"

namespace sluice::memory {
namespace {

/// The number of buckets that keys of one quota share when the table is full.
constexpr std::uint64_t shared_token_buckets = 64;

}  // namespace

void Engine::decide_overflow(const Step& step, const SlotId& id, Word now,
                             Answer& answer) noexcept {
  const std::lock_guard lock(stripes_[stripe_of(id)]);
  const SlotId shared = shared_id(step, id);
  Pause pause;
  for (;; pause()) {
    Slot* slot = table_.find(id).slot;
    if (slot == nullptr && !step.operation->writes && table_.has_idle(id, tick(now))) {
      return decide_absent(step, seed(shared, now).state, now, answer);
    }
    if (slot == nullptr && step.operation->writes) {
      slot = take_over(id, seed(shared, now), now);
      if (slot != nullptr) name(*slot, id, step.key);
    }
    if (slot == nullptr) return decide_shared(step, shared, now, answer);
    if (decide_in(*slot, step, id, now, answer)) return;
  }
}

/// An idle slot for a key without one; its initial state is `first`: the spending of its shared
/// bucket. REQUIRES: the key's stripe is locked.
Slot* Engine::take_over(const SlotId& id, const Seed& first, Word now) noexcept {
  const auto [slot, block] =
      table_.take_over(id, first.state, std::max(first.idle_at, soon(now)), tick(now));
  if (slot != nullptr) count(&Counters::evicted_idle);
  blocks_.refund(block);
  return slot;
}

/// Decides in the shared bucket. REQUIRES: the key's stripe is locked.
void Engine::decide_shared(const Step& step, const SlotId& shared, Word now,
                           Answer& answer) noexcept {
  Step unbound = step;
  unbound.binding = nullptr;  // the shared slot does not belong to the key
  Pause pause;
  for (;; pause()) {
    Slot* const slot =
        step.operation->writes ? find_shared(shared, now) : overflow_.find(shared).slot;
    if (slot == nullptr && !step.operation->writes) {
      return decide_absent(step, {}, now, answer);
    }
    if (slot == nullptr) {
      count(&Counters::rejected);
      return answer.fail(Errc::store_full);
    }
    if (decide_in(*slot, unbound, shared, now, answer)) {
      return count(&Counters::overflowed);
    }
  }
}

/// The slot of a shared bucket, claimed if there is none; null if the overflow table is full as
/// well.
Slot* Engine::find_shared(const SlotId& shared, Word now) noexcept {
  if (Slot* const slot = overflow_.find_or_claim(shared, soon(now))) return slot;
  const std::lock_guard lock(overflow_lock_);
  if (Slot* const slot = overflow_.find(shared).slot) return slot;
  return overflow_.take_over(shared, {}, soon(now), tick(now)).slot;
}

/// The initial state of a key without a slot when no slot is empty. REQUIRES: its stripe is locked.
Engine::Seed Engine::first_state(const Step& step, const SlotId& id, Word now) const noexcept {
  if (overflow_.used() == 0 || !is_shareable(step.operation->kind)) return {};
  return seed(shared_id(step, id), now);
}

/// The bucket that a key shares: one of 64 for each quota, by the key's hash.
SlotId Engine::shared_id(const Step& step, const SlotId& id) const noexcept {
  std::array<Word, quota_words + 1> quota{};
  std::copy_n(step.args.begin(), quota_words, quota.begin());
  quota.back() = static_cast<Word>(id.hash[1] % shared_token_buckets);
  const std::string_view bytes(reinterpret_cast<const char*>(quota.data()), sizeof(quota));
  return {detail::SipHash13(secret_)("", bytes), step.operation->kind};
}

/// The initial state of a key that may have spent from a shared bucket: that bucket's state, which
/// contains the spending of the key and of others.
Engine::Seed Engine::seed(const SlotId& shared, Word now) const noexcept {
  if (overflow_.used() == 0) return {};
  Pause pause;
  for (;;) {
    const Slot* const slot = overflow_.find(shared).slot;
    if (slot == nullptr) return {};
    const auto [identity, seen] = slot->snapshot();
    if (shared.matches(identity.low, identity.high) && !state::is_special(seen)) {
      const IdleTick idle_at = Slot::idle_at(identity.high);
      if (idle_at != never && idle_at <= tick(now)) return {};
      return {state::words(seen), idle_at};
    }
    pause();
  }
}

}  // namespace sluice::memory
