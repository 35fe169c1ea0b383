// The calls that change a Reservation, of every limiter that has them.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "sluice/detail/gives_back.hpp"
#include "sluice/reservation.hpp"

namespace sluice::detail {

/// A refund or a further charge of a reservation. The reservation is read when the verb is made,
/// and updated by commit().
class ReservationChange {
 public:
  /// Reads the outcome of the step: the units refunded or charged. It may update the reservation's
  /// time, and change the error.
  using Read = Word (*)(const Outcome& outcome, Word units, Reservation& after,
                        std::error_code& error) noexcept;

  /// A call that is over at once.
  ReservationChange(Store& store, Reservation& reservation, std::error_code error = {}) noexcept
      : store_(&store), reservation_(&reservation), after_(reservation), error_(error) {}

  /// Refunds `amount` of what is granted. `L` has refund_step(key, reservation, amount), and its
  /// Verbs have `refunded`, a Read.
  template <class L>
  static ReservationChange refund(const L& limiter, const Key& key, Reservation& reservation,
                                  Cost amount) noexcept {
    ReservationChange result(limiter.store(), reservation);
    if (amount.value() < 0) result.error_ = Errc::invalid_cost;
    if (amount.value() > std::max<Word>(0, reservation.granted)) {
      result.error_ = Errc::invalid_argument;
    }
    if (result.error_) return result;
    result.units_ = amount.value();
    if (amount.value() == 0 || charged_nothing(reservation)) {
      result.after_.granted -= amount.value();
      return result;
    }
    result.read_ = &L::Verbs::refunded;
    result.ask(limiter.refund_step(key, reservation, amount));
    return result;
  }

  /// Refunds or charges the difference to the actual cost. `L` has in addition charge_step(key,
  /// reservation, units), and its Verbs have `charged`, a Read.
  template <class L>
  static ReservationChange settle(const L& limiter, const Key& key, Reservation& reservation,
                                  Cost actual) noexcept {
    if (!is_settleable(reservation, actual)) {
      return {limiter.store(), reservation, Errc::invalid_cost};
    }
    const Word more = actual.value() - reservation.granted - reservation.settled;
    if (more <= 0) {
      return refund(limiter, key, reservation, std::min(-more, reservation.granted));
    }
    ReservationChange result(limiter.store(), reservation);
    if (charged_nothing(reservation)) return result;
    result.read_ = &L::Verbs::charged;
    result.units_ = more;
    result.charges_ = true;
    result.ask(limiter.charge_step(key, reservation, more));
    return result;
  }

  /// A charge wakes nobody.
  [[nodiscard]] bool gives_back() const noexcept { return step_ && !charges_; }
  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] std::optional<Plan> next() noexcept {
    if (!step_ || std::exchange(asked_, true)) return std::nullopt;
    return Plan(*step_);
  }
  void hear(const Outcome& outcome) noexcept {
    error_ = outcome.error;
    changed_ = read_(outcome, units_, after_, error_);
    if (error_) return;
    if (charges_) {
      after_.settled += changed_;
    } else {
      after_.granted -= units_;
    }
  }
  void commit() noexcept {
    if (!error_) *reservation_ = after_;
  }

 protected:
  [[nodiscard]] Settlement settlement(std::error_code& error) const noexcept {
    error = error_;
    if (error_) return {};
    return charges_ ? Settlement{0, changed_} : Settlement{changed_, 0};
  }

 private:
  void ask(const Step& step) noexcept {
    if (is_of_another_key(*reservation_, step.key)) {
      error_ = Errc::invalid_argument;
    } else {
      step_ = step;
    }
  }
  static bool is_settleable(const Reservation& reservation, Cost actual) noexcept {
    return actual.value() >= 0 && reservation.granted >= 0 && reservation.settled >= 0 &&
           reservation.settled <= word_limit;
  }

  Store* store_;
  Reservation* reservation_;
  Reservation after_;
  std::optional<Step> step_;
  Read read_ = nullptr;
  Word units_ = 0;
  bool charges_ = false;
  Word changed_ = 0;
  bool asked_ = false;
  std::error_code error_;
};

/// refund() and cancel()
class RefundVerb : public ReservationChange {
 public:
  using Result = Word;
  explicit RefundVerb(const ReservationChange& change) noexcept : ReservationChange(change) {}
  [[nodiscard]] Word take(std::error_code& error) const noexcept {
    return settlement(error).refunded;
  }
};

/// settle()
class SettleVerb : public ReservationChange {
 public:
  using Result = Settlement;
  explicit SettleVerb(const ReservationChange& change) noexcept : ReservationChange(change) {}
  [[nodiscard]] Settlement take(std::error_code& error) const noexcept { return settlement(error); }
};

/// The verbs that every limiter with reservations has. The types say when a refund and a reward
/// have given something back.
template <class L, class WhenRefunded = WhenUnits, class WhenRewarded = WhenUnits>
struct ReservationVerbs : GiveBackVerbs<WhenRewarded> {
  using Refund = GivesBack<RefundVerb, WhenRefunded>;
  using Settle = GivesBack<SettleVerb, WhenRefunded>;

  static Refund refund(const L& limiter, const Key& key, Reservation& reservation,
                       Cost amount) noexcept {
    return {WakeUp(limiter), [&] {
              return RefundVerb(ReservationChange::refund(limiter, key, reservation, amount));
            }};
  }
  static Refund cancel(const L& limiter, const Key& key, Reservation& reservation) noexcept {
    return refund(limiter, key, reservation, reservation.granted);
  }
  static Settle settle(const L& limiter, const Key& key, Reservation& reservation,
                       Cost actual) noexcept {
    return {WakeUp(limiter), [&] {
              return SettleVerb(ReservationChange::settle(limiter, key, reservation, actual));
            }};
  }

  /// Of an operation whose first output word is the number of units.
  static Word refunded(const Outcome& outcome, Word /*units*/, Reservation& /*after*/,
                       std::error_code& /*error*/) noexcept {
    return word_of(outcome, 0);
  }
  static Word charged(const Outcome& outcome, Word /*units*/, Reservation& /*after*/,
                      std::error_code& /*error*/) noexcept {
    return word_of(outcome, 0);
  }
};

/// Those of a token bucket, whose reservations come earlier when a part is refunded. A refund of no
/// whole token may still be one of a fraction.
template <class Bucket>
struct BucketVerbs : ReservationVerbs<Bucket, WhenAllowed, WhenAllowed> {
  /// The output words: the units refunded, whether nothing was charged since the grant, and when
  /// the rest is covered.
  static Word refunded(const Outcome& outcome, Word /*units*/, Reservation& after,
                       std::error_code& /*error*/) noexcept {
    if (word_of(outcome, 1) != 0) {
      const Time due = std::max(outcome.decision.at, to_time(word_of(outcome, 2)));
      after.retry_after = std::max(std::min(after.ready_at(), due) - after.at, Span{0});
    }
    return word_of(outcome, 0);
  }
  static Word charged(const Outcome& outcome, Word /*units*/, Reservation& /*after*/,
                      std::error_code& /*error*/) noexcept {
    return outcome.output.empty() ? 0 : outcome.output.back();
  }
};

}  // namespace sluice::detail
