// OwnedPlan: a plan that outlives the call that made it, for stores that execute it later.
#pragma once

#include <memory>
#include <vector>

#include "sluice/plan.hpp"

namespace sluice {

/// A copy of a plan with the bytes of its keys and the tables of its steps. Movable. Bindings are
/// dropped, because they may be destroyed before the plan is executed. Up to three allocations.
class OwnedPlan {
 public:
  explicit OwnedPlan(const Plan& plan);

  /// The plan, valid as long as this object.
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
