// The lock-free path: a key in its own slot, or one that finds an empty slot.
#include "backends/memory/engine.hpp"
#include "src/util/siphash.hpp"

namespace sluice::memory {

Engine::Hash Engine::hash(const Key& key) const noexcept {
  return detail::SipHash13(secret_)(key.tag(), key.name(), key.unit());
}

SlotId Engine::id_of(const Step& step) const noexcept {
  return is_bound(step) ? bound_id(step, step.operation->kind)
                        : SlotId{hash(step.key), step.operation->kind};
}

/// Decides in a slot that belonged to the key a moment ago. False if it no longer does: nothing was
/// decided.
bool Engine::decide_in(Slot& slot, const Step& step, const SlotId& id, Word now,
                       Answer& answer) noexcept {
  Slot::Snapshot seen = slot.snapshot();
  if (!id.owns(seen.identity)) [[unlikely]] {
    return decide_on_mismatch(slot, seen.identity, step, id, now, answer);
  }
  for (std::uint64_t conflicts = 0;; ++conflicts) {
    if (state::is_special(seen.state)) [[unlikely]] {
      seen.state = await(slot, seen.state);
      if (state::is_special(seen.state)) return false;
    }
    const Pair before = seen.state;
    StateWords words = state::words(before);
    const Verdict verdict = step.operation->apply(words, step.args, now);
    const bool allowed = verdict.status == Verdict::allowed;
    const Pair next = allowed ? state::next(words, before) : before;
    if (next != before) slot.keep_until(id, tick_after(now + verdict.reset_after));
    if (next == before || slot.state.exchange(seen.state, next)) {
      answer.put(step, verdict, now);
      if (conflicts != 0) count(&Counters::conflicts, conflicts);
      return true;
    }
    step_back();
    seen.state = slot.snapshot().state;
    if (!state::same_owner(seen.state, before)) return false;
  }
}

/// A slot with another owner or kind: of another key, or of the same key with another kind of
/// state.
bool Engine::decide_on_mismatch(Slot& slot, const Pair& identity, const Step& step,
                                const SlotId& id, Word now, Answer& answer) noexcept {
  if (!id.matches(identity.low, identity.high)) return false;
  answer.status = step.operation->check(step.args);
  if (answer.status < 0) return true;
  if (change_kind(slot, id, now)) return false;
  answer.fail_as(Verdict::wrong_kind(Slot::kind(identity.high)));
  return true;
}

/// Assigns the slot of a key with an absent state of another kind to `id`.
bool Engine::change_kind(Slot& slot, const SlotId& id, Word now) noexcept {
  const auto [changed, block] = table_.change_kind(slot, id, soon(now), tick(now));
  blocks_.refund(block);
  return changed != nullptr;
}

/// Waits for a plan that has locked the slot, and returns its contents then; special if the owner
/// has changed.
Pair Engine::await(const Slot& slot, Pair before) const noexcept {
  if (state::level(before) != state::dead) count(&Counters::waits);
  Pause pause;
  for (; state::level(before) != state::dead; pause()) {
    const Pair seen = slot.snapshot().state;
    if (!state::same_owner(seen, before)) break;
    if (!state::is_special(seen)) return seen;
  }
  return state::make(state::dead, 0, 0);
}

void Engine::execute(const Plan& plan, Completion done) noexcept {
  if (clock_life_.is_over()) [[unlikely]] {
    return done.fail(Errc::shut_down);
  }
  if (!is_fast(plan)) return execute_other(plan, done);
  const Step& step = plan.steps().front();
  const SlotId id = prefetch(step);
  // While the slot is loaded, which is probably not in the cache, the clock costs little.
  deliver(step, id, to_word(clock_->now()), done);
}

/// Decides a plan other than one step by a rule with apply().
void Engine::execute_other(const Plan& plan, Completion& done) noexcept {
  if (plan.steps().size() == 1 && !plan.id()) return execute_rule(plan, done);
  execute_plan(plan, done);
}

void Engine::decide(const Step& step, const SlotId& id, Word now, Answer& answer) noexcept {
  Pause pause;  // a thread that is assigning the slot to another key may need this core
  for (;; pause()) {
    const Table::Place place = table_.find(id);
    Slot* slot = place.slot;
    if (slot == nullptr) {
      answer.status = step.operation->check(step.args);
      if (answer.status < 0) return;
      if (!is_cell(id.kind)) return answer.fail(Errc::unsupported_operation);
      if (!place.room) return decide_overflow(step, id, now, answer);
      if (!step.operation->writes) return decide_absent(step, {}, now, answer);
      slot = table_.find_or_claim(id, soon(now));
      if (slot == nullptr) continue;  // other threads took the empty slots
      name(*slot, id, step.key);
    }
    if (decide_in(*slot, step, id, now, answer)) {
      if (is_bound(step)) remember(*step.binding, *slot);
      return;
    }
  }
}

void Engine::decide_absent(const Step& step, const StateWords& state, Word now,
                           Answer& answer) noexcept {
  StateWords words = state;
  answer.put(step, step.operation->apply(words, step.args, now), now);
}

}  // namespace sluice::memory
