// A limit of a call that waits for several: what is claimed of it, and what was granted.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "sluice/detail/exceptions.hpp"
#include "sluice/detail/waiter_for.hpp"
#include "sluice/reservation.hpp"

namespace sluice::detail {

/// One object for each type, so that a grant is only read as what it is.
template <class T>
inline constexpr char type_tag{};

/// What one call claims of one limiter, which it does not own. Threading: one thread at a time.
class ClaimedLimit {
 public:
  ClaimedLimit() = default;
  ClaimedLimit(const ClaimedLimit&) = delete;
  ClaimedLimit& operator=(const ClaimedLimit&) = delete;
  virtual ~ClaimedLimit() = default;

  /// The same claim, for another wait.
  [[nodiscard]] virtual std::unique_ptr<ClaimedLimit> fresh() const = 0;

  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual Store& store() const noexcept = 0;
  /// Of the queue.
  [[nodiscard]] virtual Key key() const noexcept = 0;
  [[nodiscard]] virtual const std::shared_ptr<WaitQueues>& queues() const noexcept = 0;
  [[nodiscard]] virtual Word units() const noexcept = 0;
  [[nodiscard]] virtual bool freed_early() const noexcept = 0;
  [[nodiscard]] virtual Step step() const noexcept = 0;
  /// See Waiter.
  [[nodiscard]] virtual Span refill_time(const Decision& left) const noexcept = 0;
  [[nodiscard]] virtual Span time_for(Word first, Word further) const noexcept = 0;

  /// Keeps the answer to step(), before any refund(). May throw std::bad_alloc.
  virtual void answered(const Outcome& own, Time asked) = 0;
  [[nodiscard]] virtual const Decision& decision() const noexcept = 0;
  /// The grant if type_tag of its type has this address, else null.
  [[nodiscard]] virtual void* grant(const char* tag) noexcept = 0;
  /// Refunds what surely stands charged of the grant, as far as the limit allows; once.
  virtual void refund(Completion done) noexcept = 0;
  /// Replaces what was charged with `actual`; none if there is nothing to do. settled() follows if
  /// the store has done it. Throws std::invalid_argument if the limiter has no settle() or it was
  /// settled before, and std::system_error (Errc::invalid_cost) if the cost is negative.
  [[nodiscard]] virtual std::optional<Step> settle_step(Cost actual) = 0;
  virtual void settled() noexcept = 0;
  /// Has the first waiter of this process ask again, since units have come back. Not for a lease,
  /// whose release does so when it has arrived.
  void wake_waiters() const noexcept;
  /// Closes a gate; none for other limits.
  [[nodiscard]] virtual std::optional<Step> close_step(Span) const noexcept { return {}; }
};

template <class Grant>
[[nodiscard]] const Decision& decision_of(const Grant& grant) noexcept {
  if constexpr (std::is_convertible_v<const Grant&, const Decision&>) {
    return grant;
  } else if constexpr (requires { grant.decision(); }) {
    return grant.decision();
  } else {
    return grant.decision;
  }
}

/// The limiters that settle a grant by the costs, since it does not contain what it charged.
template <class L>
concept SettledByCost = requires(const L& limiter, const Key& key,
                                 const typename L::Waiting::Grant& grant) {
  limiter.settle_step(key, grant, SettledCost{0, 0});
};
/// True if the cost of a grant of this limiter may be settled afterwards.
template <class L>
concept Settled = SettledByCost<L> ||
    requires(const L& limiter, const Key& key, const typename L::Waiting::Grant& grant) {
  limiter.penalize_step(key, 1);
  limiter.refund_step(key, grant, 1);
  grant.granted;
};

template <class L>
class ClaimOf final : public ClaimedLimit {
 public:
  using Waiting = typename L::Waiting;
  using Grant = typename Waiting::Grant;

  ClaimOf(std::shared_ptr<const L> limiter, const Key& key, Cost cost)
      : limiter_(std::move(limiter)),
        request_(Waiting::request(*limiter_, key, cost)),
        cost_(cost) {}

  /// The limiter, without its store.
  static std::shared_ptr<const L> borrow(const L& limiter) {
    auto copy = std::make_shared<L>(limiter);
    Waiting::borrow_store(*copy);
    return copy;
  }

  std::unique_ptr<ClaimedLimit> fresh() const override {
    return std::make_unique<ClaimOf>(limiter_, request_.key(), cost_);
  }
  const std::string& name() const noexcept override { return limiter_->name(); }
  Store& store() const noexcept override { return limiter_->store(); }
  Key key() const noexcept override { return Waiting::key(*limiter_, request_); }
  const std::shared_ptr<WaitQueues>& queues() const noexcept override {
    return Waiting::queues(*limiter_);
  }
  Word units() const noexcept override { return cost_.value(); }
  bool freed_early() const noexcept override { return Waiting::freed_early; }
  Step step() const noexcept override { return Waiting::step(*limiter_, request_); }
  Span refill_time(const Decision& left) const noexcept override {
    if constexpr (requires { Waiting::refill_time(*limiter_, request_, left); }) {
      return Waiting::refill_time(*limiter_, request_, left);
    }
    return Span{0};
  }
  Span time_for(Word first, Word further) const noexcept override {
    if constexpr (requires { Waiting::time_for(*limiter_, request_, first, further); }) {
      return Waiting::time_for(*limiter_, request_, first, further);
    }
    return Span{0};
  }

  void answered(const Outcome& own, Time asked) override {
    grant_.reset();
    grant_.emplace(Waiting::grant(*limiter_, request_, own, asked));
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
    Waiting::refund(*limiter_, request_, *grant_, std::move(done));
  }
  std::optional<Step> settle_step(Cost actual) override {
    if constexpr (Settled<L>) {
      return settle(actual);
    } else {
      raise(std::invalid_argument("\"" + name() + "\" has no settle()"));
    }
  }
  void settled() noexcept override {
    settled_ = true;
    if (stands_) wake_waiters();
  }

 private:
  std::optional<Step> settle(Cost actual) {
    if (actual.value() < 0) {
      raise(failed_with({"Grants", "settle"}, Errc::invalid_cost,
                        not_allowed("cost", actual.value(), 0, word_limit)));
    }
    if (settled_) raise(std::invalid_argument("\"" + name() + "\" was settled before"));
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
      return limiter_->settle_step(request_.key(), *grant_, SettledCost{from, to});
    } else {
      if (to > from) return limiter_->penalize_step(request_.key(), to - from);
      return limiter_->refund_step(request_.key(), *grant_, from - to);
    }
  }

  std::shared_ptr<const L> limiter_;
  typename Waiting::Request request_;
  Cost cost_;
  std::optional<Grant> grant_;
  bool refunded_ = false;
  bool settled_ = false;
  std::optional<Word> stands_;  // of the grant, if a settlement has or may have lowered it
};

}  // namespace sluice::detail
