// The calls of a learned rate that give something back, and wake who waits for it. Apart from its
// other calls: who never gives back links nothing of waiting.
#include "sluice/limiters/learned_rate.hpp"

#include "src/limiters/keyed_limiter.hpp"

namespace sluice {

template Word KeyedLimiter<LearnedRate>::refund(const KeyArg&, Reservation&, Cost) const;
template Word KeyedLimiter<LearnedRate>::refund(const KeyArg&, Reservation&, Cost,
                                                std::error_code&) const noexcept;
template Word KeyedLimiter<LearnedRate>::cancel(const KeyArg&, Reservation&) const;
template Word KeyedLimiter<LearnedRate>::cancel(const KeyArg&, Reservation&,
                                                std::error_code&) const noexcept;
template Settlement KeyedLimiter<LearnedRate>::settle(const KeyArg&, Reservation&, Cost) const;
template Settlement KeyedLimiter<LearnedRate>::settle(const KeyArg&, Reservation&, Cost,
                                                      std::error_code&) const noexcept;

void LearnedRate::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void LearnedRate::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

}  // namespace sluice
