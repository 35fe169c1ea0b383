// The refund calls that several limiters share. Threading: functions of their arguments
// alone.
#pragma once

#include <system_error>

#include "sluice/decide.hpp"
#include "sluice/reservation.hpp"
#include "src/core/failed_settle.hpp"
#include "src/limiters/or_throw.hpp"

namespace sluice::detail {

/// The call `verb`, which throws, of the one that fills an error_code.
template <class Bucket>
Word refund_as(const char* verb, const Bucket& bucket, const Key& key, Reservation& reservation,
               Cost amount) {
  return or_throw(
      {Bucket::type_name, verb}, [&] { return bucket.refund_step(key, reservation, amount); },
      [&](auto& error) { return bucket.refund(key, reservation, amount, error); });
}

template <class Bucket>
Settlement settle(const Bucket& bucket, const Key& key, Reservation& reservation, Cost true_cost) {
  return or_throw(
      {Bucket::type_name, "settle"}, [&] { return bucket.penalize_step(key, true_cost); },
      [&](auto& error) { return bucket.settle(key, reservation, true_cost, error); });
}

// Of windows, which are told what they were asked: a decision knows no cost.

/// The step that settles: `refund(units)` of the rest of the estimate, or `charge(units)` of what
/// it lacked. Of a cost below zero the refund's rule says what is wrong.
template <class Refund, class Charge>
Step settle_step(const SettledCost& cost, Refund refund, Charge charge) noexcept {
  const Word estimated = cost.estimated.value();
  const Word actual = cost.actual.value();
  if (estimated < 0 || actual < 0) return refund(Word{-1});
  return actual <= estimated ? refund(estimated - actual) : charge(actual - estimated);
}

template <class Window>
Settlement settle(const Window& window, const Key& key, const Decision& taken,
                  const SettledCost& cost) {
  std::error_code error;
  const Settlement result = window.settle(key, taken, cost, error);
  if (error) {
    throw failed_settle({Window::type_name, "settle"}, error, window.settle_step(key, taken, cost),
                        cost);
  }
  return result;
}

}  // namespace sluice::detail
