// A store whose answers arrive when a test says so. Threading: everything on one thread.
#pragma once

#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/sluice.hpp"

namespace sluice::test {

/// Decides at once, and delivers when it is told to.
class Holding final : public Store {
 public:
  void execute(const Plan& plan, Completion done) noexcept override {
    if (!holds) return inner_->execute(plan, std::move(done));
    auto call = std::make_unique<Call>();
    call->done = std::move(done);
    call->name = plan.steps()[0].operation->name;
    inner_->execute(plan, Completion(&Call::keep, call.get()));
    calls_.push_back(std::move(call));
  }
  Clock& clock() noexcept override { return time; }
  void notify(const Key& key) noexcept override { inner_->notify(key); }
  std::unique_ptr<Subscription> subscribe(const Key& key,
                                          std::function<void()> seen) noexcept override {
    return inner_->subscribe(key, std::move(seen));
  }

  [[nodiscard]] std::string_view first() const { return calls_.empty() ? "" : calls_[0]->name; }
  /// The answer to the oldest call but `newer`.
  void deliver(std::size_t newer = 0) {
    const auto call = std::move(calls_.at(newer));
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(newer));
    call->done({call->error, call->decision, call->steps, call->output});
  }
  void deliver_until(std::string_view name) {
    while (first() != name) deliver();
  }
  void deliver_all() {
    while (!calls_.empty()) deliver();
  }

  VirtualClock time;
  bool holds = false;

 private:
  struct Call {
    static void keep(void* self, const Outcome& outcome) noexcept {
      Call& call = *static_cast<Call*>(self);
      call.error = outcome.error;
      call.decision = outcome.decision;
      call.steps.assign(outcome.steps.begin(), outcome.steps.end());
      call.output.assign(outcome.output.begin(), outcome.output.end());
    }
    Completion done{nullptr, nullptr};
    std::string_view name;
    std::error_code error;
    Decision decision;
    std::vector<Decision> steps;
    std::vector<Word> output;
  };

  std::unique_ptr<Store> inner_ = make_virtual_store(time);
  std::deque<std::unique_ptr<Call>> calls_;
};

}  // namespace sluice::test
