// Batches: the memory of many decisions is prefetched together, and the clock is read once for
// them.
#include <algorithm>

#include "backends/memory/engine.hpp"

namespace sluice::memory {

/// Prefetches the memory of `step`, and returns its id.
SlotId Engine::prefetch(const Step& step) const noexcept {
  const SlotId id = id_of(step);
  const Slot* const slot = is_bound(step) ? slot_of(step) : nullptr;
  if (slot != nullptr) {
    __builtin_prefetch(slot, 1);
  } else {
    table_.prefetch(id.hash);
  }
  return id;
}

/// Decides a step by a rule with apply() at `now`, and returns its status.
Word Engine::decide_at(const Step& step, const SlotId& id, Word now, Decision& decision) noexcept {
  Answer answer{decision};
  if (!is_bound(step) && !is_valid(step.key)) {
    answer.fail(Errc::invalid_key);
    return answer.status;
  }
  Slot* slot = is_bound(step) ? slot_of(step) : nullptr;
  const bool known = slot != nullptr;
  if (!known) slot = &table_.guess(id);
  if (!decide_in(*slot, step, id, now, answer)) {
    decide(step, id, now, answer);
  } else if (!known && is_bound(step)) {
    remember(*step.binding, *slot);
  }
  return answer.status;
}

/// The same, and delivers the answer.
void Engine::deliver(const Step& step, const SlotId& id, Word now, Completion& done) noexcept {
  if (auto* const call = detail::BlockedCall::of(done); call != nullptr) {
    return call->finish(done, error_of(decide_at(step, id, now, *call->decision)));
  }
  Outcome outcome{no_error_, {}, {}, {}};
  outcome.error = error_of(decide_at(step, id, now, outcome.decision));
  if (!outcome.error) outcome.steps = {&outcome.decision, 1};
  done(outcome);
}

/// Decides up to `ahead` plans: prefetches the memory of all, reads the clock once, then decides.
void Engine::execute_run(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  std::array<SlotId, ahead> ids;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (is_fast(plans[i])) ids[i] = prefetch(plans[i].steps().front());
  }
  const Word now = to_word(clock_->now());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!is_fast(plans[i])) {
      execute_other(plans[i], done[i]);
      continue;
    }
    deliver(plans[i].steps().front(), ids[i], now, done[i]);
  }
}

void Engine::execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  if (clock_life_.is_over()) return Store::execute_batch(plans, done);
  while (!plans.empty()) {
    const std::size_t run = std::min(plans.size(), ahead);
    execute_run(plans.first(run), done.first(run));
    plans = plans.subspan(run);
    done = done.subspan(run);
  }
}

}  // namespace sluice::memory
