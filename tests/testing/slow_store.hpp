// A store that answers when the test says so, in any order. Threading: one thread.
#pragma once

#include <deque>
#include <utility>

#include "sluice/extend/owned_plan.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::test {

class SlowStore final : public Store {
 public:
  explicit SlowStore(VirtualClock& clock) : clock_(clock), inner_(make_virtual_store(clock)) {}

  void execute(const Plan& plan, Completion done) noexcept override {
    calls_.emplace_back(OwnedPlan(plan), std::move(done));
  }
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

  /// Decides the call that came as the `index`-th, now.
  void answer(std::size_t index) {
    auto& [plan, done] = calls_.at(index);
    Completion to = std::move(done);
    inner_->execute(plan.view(), std::move(to));
  }
  [[nodiscard]] std::size_t asked() const noexcept { return calls_.size(); }

 private:
  VirtualClock& clock_;
  std::unique_ptr<Store> inner_;
  std::deque<std::pair<OwnedPlan, Completion>> calls_;
};

}  // namespace sluice::test
