// Plans of several steps, or with an id: finding and holding their slots.
#include <algorithm>
#include <functional>

#include "backends/memory/plan_run.hpp"

namespace sluice::memory {

PlanRun::PlanRun(Engine& engine, const Plan& plan) noexcept
    : engine_(engine), steps_(plan.steps()), once_(plan.id().has_value()) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    marks_.make(i, [&] { return engine.mark_of(steps_[i]); });
  }
  if (once_) {
    const auto name = receipt_name(*plan.id());
    const Key key{steps_[0].key.tag, {name.data(), name.size()}};
    marks_.make(steps_.size(), [&] { return Mark{engine.hash(key), StateKind::receipt}; });
  }
  for (std::size_t i = 0; i < keys(); ++i) engine.table_.prefetch(marks_[i].hash);
}

bool PlanRun::run() noexcept {
  if (find_slots() && hold()) return decide();
  return run_crowded();
}

/// Finds or claims a slot for each key, without a lock. False if one has none and cannot.
bool PlanRun::find_slots() noexcept {
  for (std::size_t i = 0; i < keys(); ++i) {
    Slot* const slot = find(marks_[i]);
    if (slot == nullptr) return false;
    use(i, slot, marks_[i]);
  }
  return true;
}

/// The same for one key. The time is needed for keys that are new, or are used otherwise.
Slot* PlanRun::find(const Mark& mark) noexcept {
  Slot* slot = engine_.table_.find(mark).slot;
  if (slot != nullptr && Slot::kind(slot->identity.high()) == mark.kind) return slot;
  const Word now = to_word(engine_.clock_->now());
  slot = engine_.table_.find_or_claim(mark, engine_.soon(now));
  if (slot != nullptr) fit(*slot, mark, now);
  return slot;
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
  shared_ = 0;
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
  if (slot != nullptr) return slot;
  ++shared_;
  mark = engine_.shared_mark(steps_[key], mark);
  return engine_.find_shared(mark, now);
}

/// Two keys of a plan may share a bucket, and so a slot.
void PlanRun::use(std::size_t key, Slot* slot, const Mark& mark) noexcept {
  place_[key] = nowhere;
  if (slot == nullptr) return;
  std::size_t before = slots_;  // slots with lower addresses
  for (; before > 0; --before) {
    const Place other = order_[before - 1];
    if (held_[other].slot == slot) {
      place_[key] = other;
      return;
    }
    if (std::less<>()(held_[other].slot, slot)) break;
  }
  place_[key] = static_cast<Place>(slots_);
  held_.make(slots_, [&] { return Held{slot, mark}; });
  const auto first = order_.begin() + static_cast<std::ptrdiff_t>(before);
  std::copy_backward(first, order_.begin() + static_cast<std::ptrdiff_t>(slots_),
                     order_.begin() + static_cast<std::ptrdiff_t>(slots_ + 1));
  *first = static_cast<Place>(slots_++);
}

/// Holds every slot. False, with none held, if one of them has lost its owner.
bool PlanRun::hold() noexcept {
  Meetings meetings;
  for (std::size_t i = 0; i < slots_; ++i) {
    if (held_[order_[i]].hold(meetings)) continue;
    let_go(i, false);
    engine_.count(meetings);
    return false;
  }
  engine_.count(meetings);
  return true;
}

/// Lets the first `count` slots go, in the order in which they are held.
void PlanRun::let_go(std::size_t count, bool changed) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    Held& held = held_[order_[i]];
    if (changed) {
      held.let_go_changed();
    } else {
      held.let_go();
    }
    engine_.blocks_.give_back(held.larger);
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
