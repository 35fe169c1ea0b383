// Plans of several steps, or with an id: finding and locking their slots.
#include <algorithm>
#include <functional>

#include "backends/memory/plan_run.hpp"
#include "sluice/extend/conclude.hpp"

namespace sluice::memory {

PlanRun::PlanRun(Engine& engine, const Plan& plan) noexcept
    : engine_(engine), plan_(plan), steps_(plan.steps()), once_(plan.id().has_value()) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    ids_.make(i, [&] { return engine.id_of(steps_[i]); });
  }
  if (once_) {
    with_key(steps_.size(), [&](const Key& key) noexcept {
      ids_.make(steps_.size(), [&] {
        return SlotId{engine.hash(key), StateKind::idempotency_record};
      });
    });
  }
  for (std::size_t i = 0; i < keys(); ++i) engine.table_.prefetch(ids_[i].hash);
}

bool PlanRun::run() noexcept {
  if (find_slots() && hold()) return decide();
  return run_overflow();
}

/// Finds or claims a slot for each key, without a lock. False if one has none and cannot.
bool PlanRun::find_slots() noexcept {
  for (std::size_t i = 0; i < keys(); ++i) {
    Slot* const slot = find(i);
    if (slot == nullptr) return false;
    use(i, slot, ids_[i]);
  }
  return true;
}

/// The same for one key. The time is needed for keys that are new, or change their kind.
Slot* PlanRun::find(std::size_t key) noexcept {
  const SlotId& id = ids_[key];
  Slot* slot = engine_.table_.find(id).slot;
  if (slot != nullptr && Slot::kind(slot->identity.high()) == id.kind) return slot;
  const Word now = to_word(engine_.clock_->now());
  slot = engine_.table_.find_or_claim(id, engine_.soon(now));
  if (slot != nullptr) {
    name(*slot, id, key);
    fit(*slot, id, now);
  }
  return slot;
}

/// Calls `use` with the key of a step, or that of the record.
template <class Use>
void PlanRun::with_key(std::size_t key, const Use& use) const noexcept {
  if (key < steps_.size()) return use(steps_[key].key);
  const auto name = record_name(*plan_.id());
  use(Key{steps_[0].key.tag(), {name.data(), name.size()}});
}

void PlanRun::name(const Slot& slot, const SlotId& id, std::size_t key) const noexcept {
  with_key(key, [&](const Key& named) noexcept { engine_.name(slot, id, named); });
}

/// A key with an absent state may have had another kind of state before.
void PlanRun::fit(Slot& slot, const SlotId& id, Word now) noexcept {
  if (Slot::kind(slot.identity.high()) != id.kind) engine_.change_kind(slot, id, now);
}

/// The same with the stripes of all keys locked, in their order.
bool PlanRun::run_overflow() noexcept {
  std::array<bool, std::tuple_size_v<decltype(engine_.stripes_)>> wanted{};
  for (std::size_t i = 0; i < keys(); ++i) wanted[engine_.stripe_of(ids_[i])] = true;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) engine_.stripes_[i].lock();
  }
  bool found = find_overflow_slots();
  for (Pause pause; found && !hold(); found = find_overflow_slots()) pause();
  if (found) found = decide();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) engine_.stripes_[i].unlock();
  }
  return found;
}

bool PlanRun::find_overflow_slots() noexcept {
  slots_ = 0;
  shared_ = 0;
  stale_ = false;
  const Word now = to_word(engine_.clock_->now());
  for (std::size_t i = 0; i < keys(); ++i) {
    SlotId id = ids_[i];
    Slot* const slot = find_overflow_slot(i, id, now);
    if (slot != nullptr) {
      // Marked as in use for a moment, so that no other step or thread takes it before it is
      // locked.
      fit(*slot, id, now);
      slot->keep_until(id, engine_.soon(now));
    } else if (i == steps_.size() || steps_[i].operation->apply != nullptr) {
      fault_ = i % steps_.size();
      return false;
    }
    use(i, slot, id);
  }
  return true;
}

/// The key's own slot, or else the slot of the bucket that it shares, and that bucket's id. None
/// for a rule whose states are not shared: the key's state is then absent, and stays so while the
/// key's stripe is locked.
Slot* PlanRun::find_overflow_slot(std::size_t key, SlotId& id, Word now) noexcept {
  const bool shares = key < steps_.size() && steps_[key].operation->apply != nullptr;
  Slot* slot = engine_.table_.find_or_claim(id, engine_.soon(now));
  if (slot == nullptr) {
    const bool once = key == steps_.size();
    const auto first = once ? Engine::Seed{} : engine_.first_state(steps_[key], id, now);
    slot = engine_.take_over(id, first, now);
  }
  if (slot != nullptr) name(*slot, id, key);
  if (!shares) return slot;
  if (slot != nullptr) return slot;
  ++shared_;
  id = engine_.shared_id(steps_[key], id);
  return engine_.find_shared(id, now);
}

/// Two keys of a plan may share a bucket, and so a slot and its id. A slot that is found under two
/// ids has had another owner in between, and is looked up again.
void PlanRun::use(std::size_t key, Slot* slot, const SlotId& id) noexcept {
  place_[key] = nowhere;
  if (slot == nullptr) return;
  std::size_t before = slots_;  // slots with lower addresses
  for (; before > 0; --before) {
    const Place other = order_[before - 1];
    if (locked_slots_[other].slot == slot) {
      place_[key] = other;
      const SlotId& owner = locked_slots_[other].id;
      stale_ = stale_ || !id.matches(owner.low(), owner.high(0));
      return;
    }
    if (std::less<>()(locked_slots_[other].slot, slot)) break;
  }
  place_[key] = static_cast<Place>(slots_);
  locked_slots_.make(slots_, [&] { return LockedSlot{slot, id}; });
  const auto first = order_.begin() + static_cast<std::ptrdiff_t>(before);
  std::copy_backward(first, order_.begin() + static_cast<std::ptrdiff_t>(slots_),
                     order_.begin() + static_cast<std::ptrdiff_t>(slots_ + 1));
  *first = static_cast<Place>(slots_++);
}

/// Locks every slot. False, with none locked, if one of them has lost its owner.
bool PlanRun::hold() noexcept {
  if (stale_) return false;
  ContentionStats contention;
  for (std::size_t i = 0; i < slots_; ++i) {
    if (locked_slots_[order_[i]].hold(contention)) continue;
    let_go(i, false);
    engine_.count(contention);
    return false;
  }
  engine_.count(contention);
  return true;
}

/// Unlocks the first `count` slots, in locking order.
void PlanRun::let_go(std::size_t count, bool changed) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    LockedSlot& locked_slot = locked_slots_[order_[i]];
    if (changed) {
      locked_slot.let_go_changed();
    } else {
      locked_slot.let_go();
    }
    engine_.blocks_.refund(locked_slot.larger);
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
  conclude(plan.steps(), run.verdicts(), run.output(), to_time(run.at()), Source::memory, done);
}

}  // namespace sluice::memory
