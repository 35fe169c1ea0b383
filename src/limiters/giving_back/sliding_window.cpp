// The calls of a sliding window that give units back, and wake who waits for them. Apart from its
// other calls: who never gives back links nothing of waiting.
#include "sluice/limiters/sliding_window.hpp"

#include "src/limiters/keyed_limiter.hpp"

namespace sluice {

template Word KeyedLimiter<SlidingWindow>::refund(const KeyArg&, Reservation&, Cost) const;
template Word KeyedLimiter<SlidingWindow>::refund(const KeyArg&, Reservation&, Cost,
                                                  std::error_code&) const noexcept;
template Word KeyedLimiter<SlidingWindow>::cancel(const KeyArg&, Reservation&) const;
template Word KeyedLimiter<SlidingWindow>::cancel(const KeyArg&, Reservation&,
                                                  std::error_code&) const noexcept;
template Settlement KeyedLimiter<SlidingWindow>::settle(const KeyArg&, Reservation&, Cost) const;
template Settlement KeyedLimiter<SlidingWindow>::settle(const KeyArg&, Reservation&, Cost,
                                                        std::error_code&) const noexcept;

Decision SlidingWindow::reward(const KeyArg& key, Cost amount,
                               std::error_code& error) const noexcept {
  return detail::run(Verbs::reward(*this, key, amount), error);
}

Decision SlidingWindow::reward(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "reward"}, [&] { return reward_step(key, amount); },
      [&](auto& error) { return reward(key, amount, error); });
}

void SlidingWindow::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void SlidingWindow::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

}  // namespace sluice
