// Plans of several steps, or with an id: finding and holding their slots.
#include <algorithm>

#include "backends/memory/plan_run.hpp"

namespace sluice::memory {

PlanRun::PlanRun(Engine& engine, const Plan& plan) noexcept
    : engine_(engine), steps_(plan.steps()), once_(plan.id().has_value()) {
  for (std::size_t i = 0; i < steps_.size(); ++i) marks_[i] = engine.mark_of(steps_[i]);
  if (once_) {
    const auto name = receipt_name(*plan.id());
    const Key key{steps_[0].key.tag, {name.data(), name.size()}};
    marks_[steps_.size()] = {engine.hash(key), StateKind::receipt};
  }
}

bool PlanRun::run() noexcept {
  if (find_slots() && hold()) return decide();
  return run_crowded();
}

/// Finds or claims a slot for each key, without a lock. False if one has none and cannot.
bool PlanRun::find_slots() noexcept {
  const Word now = to_word(engine_.clock_->now());
  for (std::size_t i = 0; i < keys(); ++i) {
    Slot* const slot = engine_.table_.find_or_claim(marks_[i], engine_.soon(now));
    if (slot == nullptr) return false;
    fit(*slot, marks_[i], now);
    use(i, slot, marks_[i]);
  }
  return true;
}

/// A key whose state is absent may have had another kind of state before.
void PlanRun::fit(Slot& slot, const Mark& mark, Word now) noexcept {
  if (Slot::kind(slot.identity.high()) != mark.kind) engine_.change_kind(slot, mark, now);
}

/// The same under the stripes of all keys, taken in their order.
bool PlanRun::run_crowded() noexcept {
  std::array<bool, std::tuple_size_v<decltype(engine_.stripes_)>> wanted{};
  for (std::size_t i = 0; i < keys(); ++i) wanted[engine_.stripe_of(marks_[i])] = true;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) engine_.stripes_[i].lock();
  }
  bool found = find_slots_crowded();
  for (Pause pause; found && !hold(); found = find_slots_crowded()) pause();
  if (found) found = decide();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) engine_.stripes_[i].unlock();
  }
  return found;
}

bool PlanRun::find_slots_crowded() noexcept {
  slots_ = 0;
  const Word now = to_word(engine_.clock_->now());
  for (std::size_t i = 0; i < keys(); ++i) {
    Mark mark = marks_[i];
    Slot* const slot = find_crowded(i, mark, now);
    if (slot != nullptr) {
      // Kept for a moment, so that no other step or thread takes it before it is held.
      fit(*slot, mark, now);
      slot->keep_until(mark, engine_.soon(now));
    } else if (i == steps_.size() || steps_[i].operation->apply != nullptr) {
      fault_ = i % steps_.size();
      return false;
    }
    use(i, slot, mark);
  }
  return true;
}

/// A slot of the key's own, or else the slot of the bucket that it shares, and that bucket's mark.
/// None for a rule whose states are not shared: the key's state is then absent, and stays so as
/// long as the key's stripe is held.
Slot* PlanRun::find_crowded(std::size_t key, Mark& mark, Word now) noexcept {
  const bool shares = key < steps_.size() && steps_[key].operation->apply != nullptr;
  Slot* slot = engine_.table_.find_or_claim(mark, engine_.soon(now));
  if (slot == nullptr) {
    const bool once = key == steps_.size();
    const auto first = once ? Engine::Seed{} : engine_.first_state(steps_[key], mark, now);
    slot = engine_.take_over(mark, first, now);
  }
  if (!shares) return slot;
  shared_[key] = slot == nullptr;
  if (slot != nullptr) return slot;
  mark = engine_.shared_mark(steps_[key], mark);
  return engine_.find_shared(mark, now);
}

/// Two keys of a plan may share a bucket, and so a slot.
void PlanRun::use(std::size_t key, Slot* slot, const Mark& mark) noexcept {
  slot_of_[key] = slot;
  if (slot == nullptr) return;
  for (std::size_t i = 0; i < slots_; ++i) {
    if (held_[i].slot == slot) return;
  }
  held_[slots_++] = Held{slot, mark};
}

/// Holds every slot. False, with none held, if one of them has lost its owner.
bool PlanRun::hold() noexcept {
  std::sort(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(slots_),
            [](const Held& a, const Held& b) { return std::less<>()(a.slot, b.slot); });
  Meetings meetings;
  for (std::size_t i = 0; i < slots_; ++i) {
    if (held_[i].hold(meetings)) continue;
    let_go(i, false);
    engine_.count(meetings);
    return false;
  }
  engine_.count(meetings);
  return true;
}

Held& PlanRun::held(std::size_t key) noexcept {
  return *std::find_if(held_.begin(), held_.end(),
                       [&](const Held& h) { return h.slot == slot_of_[key]; });
}

void PlanRun::let_go(std::size_t count, bool changed) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (changed) {
      held_[i].let_go_changed();
    } else {
      held_[i].let_go();
    }
    engine_.blocks_.give_back(held_[i].larger);
  }
}

void Engine::execute_plan(const Plan& plan, Completion& done) noexcept {
  if (const PlanFault fault = find_fault(plan); fault.error) {
    return done.fail(fault.error, fault.step);
  }
  PlanRun run(*this, plan);
  if (!run.run()) {
    count(&Counters::rejected);
    return done.fail(Errc::store_full, static_cast<std::uint16_t>(run.fault()));
  }
  conclude(plan.steps(), run.verdicts(), run.details(), to_time(run.at()), Source::memory, done);
}

}  // namespace sluice::memory
