// Store::execute_first() of stores that execute one plan after the other.
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "sluice/detail/store_ref.hpp"
#include "sluice/extend/owned_plan.hpp"

namespace sluice {
namespace {

/// The plans, each of which is executed once the one before it was not admitted. Destroyed by
/// itself after the last one.
class Alternatives {
 public:
  Alternatives(Store& store, std::span<const Plan> plans) : store_(store) {
    plans_.reserve(plans.size());
    for (const Plan& plan : plans) plans_.emplace_back(plan);
    done_.reserve(plans.size());
  }
  void begin(std::span<Completion> done) noexcept {
    for (Completion& each : done) done_.push_back(std::move(each));
    execute();
  }

 private:
  void execute() noexcept {
    store_.execute(plans_[next_].view(), Completion(&Alternatives::answered, this));
  }
  static void answered(void* self, const Outcome& outcome) noexcept {
    static_cast<Alternatives*>(self)->hear(outcome);
  }
  void hear(const Outcome& outcome) noexcept {
    const bool is_admitted = !outcome.error && outcome.decision.allowed;
    done_[next_++](outcome);
    if (!is_admitted && next_ < plans_.size()) return execute();
    const std::unique_ptr<Alternatives> ended(this);
    for (; next_ < plans_.size(); ++next_) done_[next_].fail(Errc::cancelled);
  }

  detail::StoreRef store_;
  std::vector<OwnedPlan> plans_;
  std::vector<Completion> done_;
  std::size_t next_ = 0;
};

}  // namespace

void Store::execute_first(std::span<const Plan> plans, std::span<Completion> done) noexcept try {
  if (plans.empty()) return;
  auto* const alternatives = new Alternatives(*this, plans);
  alternatives->begin(done);  // which owns itself now
} catch (const std::bad_alloc&) {
  for (Completion& each : done) each.fail(std::make_error_code(std::errc::not_enough_memory));
}

}  // namespace sluice
