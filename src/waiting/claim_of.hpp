// What claims of all limiters have in common.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "sluice/detail/claimed_limit.hpp"
#include "sluice/limiters/keyed_limiter.hpp"
#include "src/waiting/acquire.hpp"

namespace sluice::detail {

/// A claim of a limiter `L`, which is a class `Own` that derives from this. `Own` says what is
/// asked (step), under which key and in which queues it waits. Unless L grants Reservations, it has
/// these two members as well:
///
///     typename L::Grant grant_of(const Outcome& outcome, Time asked) const;   also of a refusal
///     void refund_grant(typename L::Grant& grant, Completion done) noexcept;
///
/// Where it grants them, `Own` may hide grant_of(), refund_step() and charge_step() of this class.
template <class L, class Own>
class ClaimOf : public ClaimedLimit {
 public:
  using Grant = typename L::Grant;

  ClaimOf(const L& limiter, const Key& key, Cost cost)
      : limiter_(limiter), tag_(key.tag()), name_(key.name()), cost_(cost) {
    limiter_.borrow_store();
  }

  std::unique_ptr<ClaimedLimit> fresh(Word units) const override {
    return std::make_unique<Own>(limiter_, own_key(), Cost(units));
  }
  const std::string& name() const noexcept override { return limiter_.name(); }
  Store& store() const noexcept override { return limiter_.store(); }
  Word units() const noexcept override { return cost_.value(); }

  Word most_units() const noexcept override {
    if constexpr (is_configured) {
      if (!is_constant()) return step().args[0];  // the limit; see Operation
    }
    return word_limit;
  }

  bool may_change() const noexcept override {
    if constexpr (is_configured) return limiter_.has_table();
    return false;
  }

  void answered(const Outcome& own, Time asked) override {
    grant_.reset();
    grant_.emplace(static_cast<const Own&>(*this).grant_of(own, asked));
    if constexpr (std::same_as<Grant, Reservation>) grant_->key_mark = key_mark(key());
  }
  const Decision& decision() const noexcept override { return decision_of(*grant_); }
  void* grant(const char* tag) noexcept override {
    return tag == &type_tag<Grant> && grant_ ? &*grant_ : nullptr;
  }
  void refund(Completion done) noexcept override {
    if (std::exchange(refunded_, true)) return done(Outcome{});
    if constexpr (Settled<L>) {
      if (charged_nothing(decision())) return done(Outcome{});
      const Word stands = stands_.value_or(grant_->granted);
      execute_refund(change_step(stands, 0), std::move(done));
    } else {
      static_cast<Own&>(*this).refund_grant(*grant_, std::move(done));
    }
  }
  std::optional<Step> settle_step(Cost actual) override {
    if constexpr (Settled<L>) {
      return settle_to(actual);
    } else {
      throw std::invalid_argument("\"" + name() + "\" has no settle()");
    }
  }
  void settled() noexcept override { settled_ = true; }
  bool is_settled() const noexcept override { return settled_; }
  bool learns() const noexcept override { return is_learning; }
  std::optional<Step> limited_step() noexcept override {
    if constexpr (is_learning) {
      if (!std::exchange(refunded_, true)) return limiter_.limited_step(own_key(), *grant_);
    }
    return {};
  }

 protected:
  [[nodiscard]] const L& limiter() const noexcept { return limiter_; }
  [[nodiscard]] Key own_key() const noexcept { return {tag_, name_}; }
  [[nodiscard]] Cost cost() const noexcept { return cost_; }

  Reservation grant_of(const Outcome& own, Time /*asked*/) const noexcept {
    return L::reservation(own.decision, own.output, cost_);
  }
  Step refund_step(const Reservation& grant, Word units) const noexcept {
    return limiter_.refund_step(own_key(), grant, units);
  }
  Step charge_step(const Reservation& grant, Word units) const noexcept {
    return limiter_.charge_step(own_key(), grant, units);
  }

 private:
  /// The limiter has its limit from its constructor or a table, and not from the store.
  static constexpr bool is_configured = requires(const L& limiter) { limiter.has_table(); };
  static constexpr bool is_learning = requires(const L& limiter, const Key& key, Grant grant) {
    limiter.limited_step(key, grant);
  };

  bool lowers_charge() const noexcept override { return stands_.has_value(); }
  std::optional<Step> settle_to(Cost actual) {
    if (actual.value() < 0) {
      throw failed_with({"Grants", "settle"}, Errc::invalid_cost,
                        not_allowed("cost", actual.value(), 0, word_limit));
    }
    if (settled_) throw std::invalid_argument("\"" + name() + "\" was settled before");
    if (refunded_ || charged_nothing(decision())) return {};
    // Whether or not the store does it; what is charged on top is none of the grant.
    if (actual.value() < grant_->granted) stands_ = actual.value();
    // The limiter's own settle() may have charged more.
    return change_step(grant_->granted + grant_->settled, actual.value());
  }
  Step change_step(Word from, Word to) const noexcept {
    const Own& own = static_cast<const Own&>(*this);
    return to > from ? own.charge_step(*grant_, to - from)
                     : own.refund_step(*grant_, std::min(from - to, grant_->granted));
  }

  L limiter_;
  std::string tag_;
  std::string name_;
  Cost cost_;
  std::optional<Grant> grant_;
  bool refunded_ = false;
  bool settled_ = false;
  std::optional<Word> stands_;  // of the grant, if a settlement has or may have lowered it
};

}  // namespace sluice::detail

namespace sluice {

// The calls of KeyedLimiter for waiting. Each limiter instantiates them next to its claim.
template <class Limiter>
Reservation KeyedLimiter<Limiter>::acquire(const KeyArg& key, Cost cost, const Deadline& deadline,
                                           const WaitOptions& options) const {
  return detail::acquire_one(self(), key, cost, deadline, options);
}
template <class Limiter>
Reservation KeyedLimiter<Limiter>::acquire(const KeyArg& key, Cost cost, const Deadline& deadline,
                                           const WaitOptions& options,
                                           std::error_code& error) const noexcept {
  return detail::acquire_one(self(), key, cost, deadline, options, error);
}
template <class Limiter>
std::size_t KeyedLimiter<Limiter>::waiting(const KeyArg& key) const {
  return waiters_of(named(key));
}

}  // namespace sluice
