// Giving a lease back and waking the next waiter, in this process or another.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "sluice/rules/wait_line.hpp"
#include "sluice/store.hpp"

namespace sluice::detail {

class WaitQueues;

/// The plan that gives something back and asks in the same round trip which process is the first in
/// the wait line.
class Release {
 public:
  /// `queues` may be null: nobody waits.
  Release(const Store& store, const Step& refund, std::shared_ptr<WaitQueues> queues) noexcept;
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;

  [[nodiscard]] std::span<const Step> steps() const noexcept { return {steps_.data(), count_}; }
  /// Output words of the plan, those of the refund first.
  [[nodiscard]] std::size_t output() const noexcept {
    return refund_output_ + (count_ == 2 ? WaitLineRule::output : 0);
  }
  /// Wakes the next waiter, here or in another process. `output`: the output words of the plan.
  void wake(Store& store, std::span<const Word> output) const noexcept;

 private:
  std::array<Step, 2> steps_;
  std::size_t count_ = 1;
  std::size_t refund_output_;
  std::string tag_;
  std::string queue_;
  std::string wait_line_;
  std::shared_ptr<WaitQueues> queues_;
};

}  // namespace sluice::detail
