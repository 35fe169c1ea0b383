// What claims of all limiters have in common.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "sluice/detail/claimed_limit.hpp"

namespace sluice::detail {

/// A claim of a limiter `L`, which is a class `Own` that derives from this. `Own` says what is
/// asked (step), under which key and in which queues it waits, and has these two members:
///
///     typename L::Grant grant_of(const Outcome& outcome, Time asked) const;   also of a refusal
///     void refund_grant(typename L::Grant& grant, Completion done) noexcept;
template <class L, class Own>
class ClaimOf : public ClaimedLimit {
 public:
  using Grant = typename L::Grant;

  ClaimOf(const L& limiter, const Key& key, Cost cost)
      : limiter_(limiter), tag_(key.tag()), name_(key.name()), cost_(cost) {
    limiter_.borrow_store();
  }

  std::unique_ptr<ClaimedLimit> fresh() const override {
    return std::make_unique<Own>(limiter_, own_key(), cost_);
  }
  const std::string& name() const noexcept override { return limiter_.name(); }
  Store& store() const noexcept override { return limiter_.store(); }
  Word units() const noexcept override { return cost_.value(); }

  void answered(const Outcome& own, Time asked) override {
    grant_.reset();
    grant_.emplace(static_cast<const Own&>(*this).grant_of(own, asked));
  }
  const Decision& decision() const noexcept override { return decision_of(*grant_); }
  void* grant(const char* tag) noexcept override {
    return tag == &type_tag<Grant> && grant_ ? &*grant_ : nullptr;
  }
  void refund(Completion done) noexcept override {
    if (std::exchange(refunded_, true)) return done(Outcome{});
    if constexpr (Settled<L>) {
      if (stands_) return store().execute(change_step(*stands_, 0), std::move(done));
    }
    static_cast<Own&>(*this).refund_grant(*grant_, std::move(done));
  }
  std::optional<Step> settle_step(Cost actual) override {
    if constexpr (Settled<L>) {
      return settle(actual);
    } else {
      throw std::invalid_argument("\"" + name() + "\" has no settle()");
    }
  }
  void settled() noexcept override {
    settled_ = true;
    if (stands_) wake_waiters();
  }

 protected:
  [[nodiscard]] const L& limiter() const noexcept { return limiter_; }
  [[nodiscard]] Key own_key() const noexcept { return {tag_, name_}; }
  [[nodiscard]] Cost cost() const noexcept { return cost_; }

 private:
  std::optional<Step> settle(Cost actual) {
    if (actual.value() < 0) {
      throw failed_with({"Grants", "settle"}, Errc::invalid_cost,
                        not_allowed("cost", actual.value(), 0, word_limit));
    }
    if (settled_) throw std::invalid_argument("\"" + name() + "\" was settled before");
    if (refunded_ || charged_nothing(decision())) return {};
    // Whether or not the store does it; what is charged on top is none of the grant.
    if (actual.value() < charged()) stands_ = actual.value();
    return change_step(charged(), actual.value());
  }
  /// By the decision.
  Word charged() const noexcept {
    if constexpr (SettledByCost<L>) {
      return cost_.value();
    } else {
      return grant_->granted;
    }
  }
  Step change_step(Word from, Word to) const noexcept {
    if constexpr (SettledByCost<L>) {
      return limiter_.settle_step(own_key(), *grant_, SettledCost{from, to});
    } else {
      if (to > from) return limiter_.penalize_step(own_key(), to - from);
      return limiter_.refund_step(own_key(), *grant_, from - to);
    }
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
