// The calls of a slot lock that give slots back, and wake who waits for them. Apart from its other
// calls: who never gives back links nothing of waiting.
#include "sluice/limiters/slot_lock.hpp"

#include "src/limiters/or_throw.hpp"

namespace sluice {

Word SlotLock::cancel(const KeyArg& key, const SlotPermit& permit,
                      std::error_code& error) const noexcept {
  return detail::run(Verbs::cancel(*this, key, permit), error);
}

Word SlotLock::cancel(const KeyArg& key, const SlotPermit& permit) const {
  return detail::or_throw(
      {type_name, "cancel"}, [&] { return cancel_step(key, permit); },
      [&](auto& error) { return cancel(key, permit, error); });
}

void SlotLock::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void SlotLock::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

}  // namespace sluice
