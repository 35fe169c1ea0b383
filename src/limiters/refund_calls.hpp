// The refund calls that both kinds of token bucket share. Threading: functions of their arguments
// alone.
#pragma once

#include <algorithm>
#include <array>
#include <system_error>

#include "sluice/decide.hpp"
#include "sluice/reservation.hpp"

namespace sluice::detail {

/// The exception of a failed settle() that executed `step`, whose first chosen argument is the
/// units charged or refunded.
[[nodiscard]] std::system_error failed_settle(const CallName& call, const std::error_code& error,
                                              const Step& step, const SettledCost& cost);

/// Applies the result of a refund of `amount` to a reservation: the units refunded, whether it was
/// the newest, and when the rest is covered.
inline Word note_refund(Reservation& reservation, Cost amount, const Decision& decision,
                        const std::array<Word, 3>& output) noexcept {
  reservation.granted -= amount.value();
  if (output[1] != 0) {  // nothing was charged since: the rest is covered earlier
    const Time due = std::max(decision.at, to_time(output[2]));
    const Span wait = std::min(reservation.at(), due) - reservation.decision.at;
    reservation.decision.retry_after = std::max(wait, Span{0});
  }
  return output[0];
}

template <class Limiter>
Settlement settle(const Limiter& limiter, const Key& key, Reservation& reservation, Cost true_cost,
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
    return {limiter.refund(key, reservation, std::min(-more, reservation.granted), error), 0};
  }
  limiter.penalize(key, more, error);
  if (error) return {};
  reservation.settled += more;
  return {0, more};
}

}  // namespace sluice::detail
