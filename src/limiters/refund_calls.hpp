// The refund calls that both kinds of token bucket share. Threading: functions of their arguments
// alone.
#pragma once

#include <algorithm>
#include <array>
#include <system_error>

#include "sluice/decide.hpp"
#include "sluice/reservation.hpp"
#include "src/limiters/or_throw.hpp"

namespace sluice::detail {

/// The exception of a failed settle() that executed `step`, whose first chosen argument is the
/// units charged or refunded.

/// Applies the result of a refund of `amount` to a reservation: the units refunded, whether it was
/// the newest, and when the rest is covered.
template <class Bucket>
Word refund(const Bucket& bucket, const Key& key, Reservation& reservation, Cost amount,
            std::error_code& error) noexcept {
  std::array<Word, 3> output{};
  const Decision decision =
      decide(bucket.store(), bucket.refund_step(key, reservation, amount), error, {}, output);
  if (error) return 0;
  reservation.granted -= amount.value();
  if (output[1] != 0) {  // nothing was charged since: the rest is covered earlier
    const Time due = std::max(decision.at, to_time(output[2]));
    const Span wait = std::min(reservation.at(), due) - reservation.decision.at;
    reservation.decision.retry_after = std::max(wait, Span{0});
  }
  return output[0];
}

/// The same, for the call `verb` that throws.
template <class Bucket>
Word refund_as(const char* verb, const Bucket& bucket, const Key& key, Reservation& reservation,
               Cost amount) {
  return or_throw(
      {Bucket::type_name, verb}, [&] { return bucket.refund_step(key, reservation, amount); },
      [&](auto& error) { return refund(bucket, key, reservation, amount, error); });
}

template <class Bucket>
Settlement settle(const Bucket& bucket, const Key& key, Reservation& reservation, Cost true_cost,
                  std::error_code& error) noexcept {
  if (true_cost.value() < 0 || reservation.granted < 0 || reservation.settled < 0 ||
      reservation.settled > word_limit) {
    error = Errc::invalid_cost;
    return {};
  }
  error.clear();
  if (charged_nothing(reservation.decision)) return {};
  const Word more = true_cost.value() - reservation.granted - reservation.settled;
  if (more <= 0) {
    return {refund(bucket, key, reservation, std::min(-more, reservation.granted), error), 0};
  }
  bucket.penalize(key, more, error);
  if (error) return {};
  reservation.settled += more;
  return {0, more};
}

template <class Bucket>
Settlement settle(const Bucket& bucket, const Key& key, Reservation& reservation, Cost true_cost) {
  return or_throw(
      {Bucket::type_name, "settle"}, [&] { return bucket.penalize_step(key, true_cost); },
      [&](auto& error) { return settle(bucket, key, reservation, true_cost, error); });
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

/// What a settle() throws that changed by `step`, which has what is charged or given back as its
/// first chosen argument.
[[nodiscard]] std::system_error failed_settle(const CallName& call, const std::error_code& error,
                                              const Step& step, const SettledCost& cost);

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
