// The calls of a shared token bucket that give tokens back, or may, and wake who waits for them.
// Apart from its other calls: who never gives back links nothing of waiting.
#include "sluice/limiters/shared_token_bucket.hpp"

#include "src/limiters/keyed_limiter.hpp"

namespace sluice {

template Word KeyedLimiter<SharedTokenBucket>::refund(const KeyArg&, Reservation&, Cost) const;
template Word KeyedLimiter<SharedTokenBucket>::refund(const KeyArg&, Reservation&, Cost,
                                                      std::error_code&) const noexcept;
template Word KeyedLimiter<SharedTokenBucket>::cancel(const KeyArg&, Reservation&) const;
template Word KeyedLimiter<SharedTokenBucket>::cancel(const KeyArg&, Reservation&,
                                                      std::error_code&) const noexcept;
template Settlement KeyedLimiter<SharedTokenBucket>::settle(const KeyArg&, Reservation&,
                                                            Cost) const;
template Settlement KeyedLimiter<SharedTokenBucket>::settle(const KeyArg&, Reservation&, Cost,
                                                            std::error_code&) const noexcept;

void SharedTokenBucket::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void SharedTokenBucket::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

Decision SharedTokenBucket::reward(const KeyArg& key, Cost amount,
                                   std::error_code& error) const noexcept {
  return detail::run(Verbs::reward(*this, key, amount), error);
}

Decision SharedTokenBucket::reward(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "reward"}, [&] { return reward_step(key, amount); },
      [&](auto& error) { return reward(key, amount, error); });
}

SharedTokenBucket::Change SharedTokenBucket::try_configure(const KeyArg& key, const Quota& quota,
                                                           std::error_code& error) const noexcept {
  return detail::run(Verbs::try_configure(*this, key, quota), error);
}

SharedTokenBucket::Change SharedTokenBucket::try_configure(const KeyArg& key,
                                                           const Quota& quota) const {
  return detail::or_throw(
      {type_name, "try_configure"},
      [&] { return configure_step(key, quota, Inheritance::as_is, true); },
      [&](auto& error) { return try_configure(key, quota, error); });
}

SharedTokenBucket::Change SharedTokenBucket::configure(const KeyArg& key, const Quota& quota,
                                                       Inheritance inheritance,
                                                       std::error_code& error) const noexcept {
  return detail::run(Verbs::configure(*this, key, quota, inheritance), error);
}

SharedTokenBucket::Change SharedTokenBucket::configure(const KeyArg& key, const Quota& quota,
                                                       Inheritance inheritance) const {
  return detail::or_throw(
      {type_name, "configure"}, [&] { return configure_step(key, quota, inheritance); },
      [&](auto& error) { return configure(key, quota, inheritance, error); });
}

}  // namespace sluice
