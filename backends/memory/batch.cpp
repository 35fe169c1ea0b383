// Batches: the memory of many decisions is prefetched together, and the clock is read once for
// them.
#include <algorithm>

#include "backends/memory/engine.hpp"

namespace sluice::memory {

/// Prefetches the memory of `step`, and returns its id.
SlotId Engine::prefetch(const Step& step) const noexcept {
  const SlotId id = id_of(step);
  const void* const slot =
      is_bound(step) ? step.binding->slot.load(std::memory_order_relaxed)  // a hint: see bind()
                     : nullptr;
  if (slot != nullptr) {
    __builtin_prefetch(slot, 1);
  } else {
    table_.prefetch(id.hash);
  }
  return id;
}

/// Decides a step of a batch at the time of `reading`, and returns its status.
Word Engine::decide_at(const Step& step, const SlotId& id, Reading& reading,
                       Decision& decision) noexcept {
  Answer answer{decision};
  if (!is_bound(step) && !is_valid(step.key)) {
    answer.fail(Errc::invalid_key);
    return answer.status;
  }
  auto* slot = is_bound(step) ? static_cast<Slot*>(step.binding->slot.load(
                                    std::memory_order_relaxed))  // a hint: see bind()
                              : nullptr;
  const bool known = slot != nullptr;
  if (!known) slot = &table_.guess(id);
  if (!decide_in(*slot, step, id, reading, answer)) {
    decide(step, id, reading, answer);
  } else if (!known && is_bound(step)) {
    remember(*step.binding, *slot);
  }
  return answer.status;
}

/// Decides up to `ahead` plans: prefetches the memory of all, reads the clock once, then decides.
void Engine::execute_run(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  std::array<SlotId, ahead> ids;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (is_fast(plans[i])) ids[i] = prefetch(plans[i].steps().front());
  }
  Reading reading(*clock_);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!is_fast(plans[i])) {
      execute_other(plans[i], done[i]);
      continue;
    }
    const Step& step = plans[i].steps().front();
    if (auto* const call = detail::BlockedCall::of(done[i]); call != nullptr) {
      call->finish(done[i], error_of(decide_at(step, ids[i], reading, *call->decision)));
      continue;
    }
    Outcome outcome{no_error_, {}, {}, {}};
    outcome.error = error_of(decide_at(step, ids[i], reading, outcome.decision));
    if (!outcome.error) outcome.steps = {&outcome.decision, 1};
    done[i](outcome);
  }
}

void Engine::execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  while (!plans.empty()) {
    const std::size_t run = std::min(plans.size(), ahead);
    execute_run(plans.first(run), done.first(run));
    plans = plans.subspan(run);
    done = done.subspan(run);
  }
}

}  // namespace sluice::memory
