// The calls of both kinds of token bucket that change a Reservation.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "sluice/detail/verb.hpp"
#include "sluice/reservation.hpp"

namespace sluice::detail {

/// A refund or a further charge of a reservation. The reservation is read when the verb is made,
/// and updated by commit().
class ReservationChange {
 public:
  /// A call that is over at once.
  ReservationChange(Store& store, Reservation& reservation, std::error_code error = {}) noexcept
      : store_(&store), reservation_(&reservation), after_(reservation), error_(error) {}
  enum class Kind : bool { refund, charge };
  /// The step refunds or charges `units`.
  ReservationChange(Store& store, Reservation& reservation, const Step& step, Kind kind,
                    Word units) noexcept
      : ReservationChange(store, reservation) {
    step_ = step;
    kind_ = kind;
    units_ = units;
  }

  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] std::optional<Plan> next() noexcept {
    if (!step_ || std::exchange(asked_, true)) return std::nullopt;
    return Plan(*step_);
  }
  void hear(const Outcome& outcome) noexcept {
    error_ = outcome.error;
    if (error_) return;
    if (kind_ == Kind::charge) {
      changed_ = outcome.output.empty() ? 0 : outcome.output.back();
      after_.settled += changed_;
    } else {
      refunded(outcome);
    }
  }
  void commit() noexcept {
    if (!error_) *reservation_ = after_;
  }

 protected:
  [[nodiscard]] Settlement settlement(std::error_code& error) const noexcept {
    error = error_;
    return kind_ == Kind::charge ? Settlement{0, changed_} : Settlement{changed_, 0};
  }

 private:
  /// The output words: the units refunded, whether nothing was charged since the grant, and when
  /// the rest is covered.
  void refunded(const Outcome& outcome) noexcept {
    after_.granted -= units_;
    changed_ = word_of(outcome, 0);
    if (word_of(outcome, 1) == 0) return;
    const Time due = std::max(outcome.decision.at, to_time(word_of(outcome, 2)));
    const Span wait = std::min(after_.at(), due) - after_.decision.at;
    after_.decision.retry_after = std::max(wait, Span{0});
  }

  Store* store_;
  Reservation* reservation_;
  Reservation after_;
  std::optional<Step> step_;
  Kind kind_ = Kind::refund;
  Word units_ = 0;
  Word changed_ = 0;
  bool asked_ = false;
  std::error_code error_;
};

/// refund() and cancel().
class RefundVerb : public ReservationChange {
 public:
  using Result = Word;
  template <class Bucket>
  RefundVerb(const Bucket& bucket, const Key& key, Reservation& reservation, Cost amount) noexcept
      : ReservationChange(bucket.store(), reservation, bucket.refund_step(key, reservation, amount),
                          Kind::refund, amount.value()) {}
  [[nodiscard]] Word take(std::error_code& error) const noexcept {
    return settlement(error).given_back;
  }
};

/// settle()
class SettleVerb : public ReservationChange {
 public:
  using Result = Settlement;
  template <class Bucket>
  SettleVerb(const Bucket& bucket, const Key& key, Reservation& reservation,
             Cost true_cost) noexcept
      : ReservationChange(change(bucket, key, reservation, true_cost)) {}
  [[nodiscard]] Settlement take(std::error_code& error) const noexcept { return settlement(error); }

 private:
  template <class Bucket>
  static ReservationChange change(const Bucket& bucket, const Key& key, Reservation& reservation,
                                  Cost true_cost) noexcept {
    Store& store = bucket.store();
    if (true_cost.value() < 0 || reservation.granted < 0 || reservation.settled < 0 ||
        reservation.settled > word_limit) {
      return {store, reservation, Errc::invalid_cost};
    }
    if (charged_nothing(reservation.decision)) return {store, reservation};
    const Word more = true_cost.value() - reservation.granted - reservation.settled;
    if (more > 0) return {store, reservation, bucket.penalize_step(key, more), Kind::charge, more};
    const Word back = std::min(-more, reservation.granted);
    return {store, reservation, bucket.refund_step(key, reservation, back), Kind::refund, back};
  }
};

/// The verbs that both kinds of bucket have.
template <class Bucket>
struct ReservationVerbs {
  static RefundVerb refund(const Bucket& bucket, const Key& key, Reservation& reservation,
                           Cost amount) noexcept {
    return {bucket, key, reservation, amount};
  }
  static RefundVerb cancel(const Bucket& bucket, const Key& key,
                           Reservation& reservation) noexcept {
    return {bucket, key, reservation, reservation.granted};
  }
  static SettleVerb settle(const Bucket& bucket, const Key& key, Reservation& reservation,
                           Cost true_cost) noexcept {
    return {bucket, key, reservation, true_cost};
  }
};

}  // namespace sluice::detail
