// A plan that outlives the call that made it: for those who decide later than they are asked.
#pragma once

#include <memory>
#include <vector>

#include "sluice/plan.hpp"

namespace sluice {

/// Copies a plan with the bytes of its keys and its steps' tables. Movable. Bindings are left
/// behind: they may be gone by the time the plan is decided. Up to three allocations.
class OwnedPlan {
 public:
  explicit OwnedPlan(const Plan& plan);

  /// The plan; it lives no longer than this object.
  [[nodiscard]] Plan view() const { return plan_; }

  /// As Plan::cancelled_by().
  void cancelled_by(StopToken stop) { plan_ = plan_.cancelled_by(std::move(stop)); }

 private:
  std::unique_ptr<char[]> bytes_;
  std::unique_ptr<Word[]> words_;
  std::vector<Step> steps_;
  Plan plan_;
};

}  // namespace sluice
