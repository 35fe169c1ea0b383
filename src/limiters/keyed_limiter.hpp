// The calls of KeyedLimiter that change a reservation. Each limiter instantiates them in its
// source.
#pragma once

#include "sluice/limiters/keyed_limiter.hpp"

#include <algorithm>
#include <system_error>

#include "sluice/detail/reservation_verb.hpp"
#include "src/core/failed_settle.hpp"
#include "src/limiters/or_throw.hpp"

namespace sluice {

namespace detail {

/// The exception of refund() or cancel().
template <class L>
std::system_error failed_refund(const char* verb, const std::error_code& error, const L& limiter,
                                const Key& key, const Reservation& grant, Cost amount) {
  const CallName call{L::type_name, verb};
  const Step step = limiter.refund_step(key, grant, amount);
  if (is_of_another_key(grant, step.key)) return failed_with(call, error, of_another_key);
  if (error == Errc::invalid_cost || error == Errc::invalid_argument) {
    const Word most = std::max<Word>(0, grant.granted);
    return failed_with(call, error, not_allowed("amount", amount.value(), 0, most));
  }
  return failed_call(call, error, step);
}

}  // namespace detail

template <class Limiter>
Word KeyedLimiter<Limiter>::refund(const KeyArg& key, Reservation& grant, Cost amount,
                                   std::error_code& error) const noexcept {
  return detail::run(Limiter::Verbs::refund(self(), key, grant, amount), error);
}
template <class Limiter>
Word KeyedLimiter<Limiter>::refund(const KeyArg& key, Reservation& grant, Cost amount) const {
  std::error_code error;
  const Word units = refund(key, grant, amount, error);
  if (error) throw detail::failed_refund("refund", error, self(), key, grant, amount);
  return units;
}

template <class Limiter>
Word KeyedLimiter<Limiter>::cancel(const KeyArg& key, Reservation& grant,
                                   std::error_code& error) const noexcept {
  return detail::run(Limiter::Verbs::cancel(self(), key, grant), error);
}
template <class Limiter>
Word KeyedLimiter<Limiter>::cancel(const KeyArg& key, Reservation& grant) const {
  std::error_code error;
  const Word units = cancel(key, grant, error);
  if (error) throw detail::failed_refund("cancel", error, self(), key, grant, grant.granted);
  return units;
}

template <class Limiter>
Settlement KeyedLimiter<Limiter>::settle(const KeyArg& key, Reservation& grant, Cost actual,
                                         std::error_code& error) const noexcept {
  return detail::run(Limiter::Verbs::settle(self(), key, grant, actual), error);
}
template <class Limiter>
Settlement KeyedLimiter<Limiter>::settle(const KeyArg& key, Reservation& grant, Cost actual) const {
  std::error_code error;
  const Settlement result = settle(key, grant, actual, error);
  if (!error) return result;
  throw detail::failed_settle({Limiter::type_name, "settle"}, error,
                              self().charge_step(key, grant, 1), grant, actual);
}

}  // namespace sluice
