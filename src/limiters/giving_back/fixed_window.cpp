// The calls of a fixed window that give units back, and wake who waits for them. Apart from its
// other calls: who never gives back links nothing of waiting.
#include "sluice/limiters/fixed_window.hpp"

#include "src/limiters/keyed_limiter.hpp"

namespace sluice {

template Word KeyedLimiter<FixedWindow>::refund(const KeyArg&, Reservation&, Cost) const;
template Word KeyedLimiter<FixedWindow>::refund(const KeyArg&, Reservation&, Cost,
                                                std::error_code&) const noexcept;
template Word KeyedLimiter<FixedWindow>::cancel(const KeyArg&, Reservation&) const;
template Word KeyedLimiter<FixedWindow>::cancel(const KeyArg&, Reservation&,
                                                std::error_code&) const noexcept;
template Settlement KeyedLimiter<FixedWindow>::settle(const KeyArg&, Reservation&, Cost) const;
template Settlement KeyedLimiter<FixedWindow>::settle(const KeyArg&, Reservation&, Cost,
                                                      std::error_code&) const noexcept;

Decision FixedWindow::reward(const KeyArg& key, Cost amount,
                             std::error_code& error) const noexcept {
  return detail::run(Verbs::reward(*this, key, amount), error);
}

Decision FixedWindow::reward(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "reward"}, [&] { return refund_step(key, {}, amount); },
      [&](auto& error) { return reward(key, amount, error); });
}

void FixedWindow::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void FixedWindow::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

}  // namespace sluice
