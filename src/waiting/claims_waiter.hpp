// The stay of a call that waits for several limits in the queue of one of them.
#pragma once

#include <memory>
#include <span>

#include "sluice/detail/claims.hpp"
#include "sluice/detail/waiter.hpp"

namespace sluice::detail {

class ClaimsWaiter final : public Waiter {
 public:
  /// `home` is the limit whose queue it joins.
  ClaimsWaiter(std::shared_ptr<WaiterFor<Claims>> call, std::size_t home, Time asleep_until);

 private:
  void ask(const Step* turn, Completion done) noexcept override;
  Decision read(const Outcome& outcome) override;
  void refund(Completion done) noexcept override;
  void timer_changed() noexcept override { call_->timer_changed(); }
  void finished(std::error_code error) noexcept override { call_->end(error, refusal()); }

  Decision left() const noexcept override;
  Span refill_time(const Decision& left) const noexcept override {
    return call_->limits_[home_]->refill_time(left);
  }
  Span time_for(Word first, Word further) const noexcept override {
    return call_->limits_[home_]->time_for(first, further);
  }
  bool may_be_freed_early() const noexcept override;
  bool moves_after_refusal(Time until) noexcept override;
  bool moves_before_asking() noexcept override;
  void moved() noexcept override;

  static Terms terms_of(WaiterFor<Claims>& call, std::size_t home, Time asleep_until);
  [[nodiscard]] bool shares_queue(std::size_t limit) const noexcept;
  void read_grant(const Outcome& outcome);
  [[nodiscard]] const Decision& decisive(const Outcome& outcome) const noexcept;

  std::shared_ptr<WaiterFor<Claims>> call_;
  std::size_t home_;
  std::size_t next_home_;  // the limit that has refused, or whose queue it joins next
  Time asleep_until_{};    // there
  Time asked_{};
};

}  // namespace sluice::detail
