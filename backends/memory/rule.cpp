// One step by a rule with effects. A cell is exchanged, as for other rules; a state in a block is
// decided by the thread that has locked its slot.
#include <new>

#include "backends/memory/engine.hpp"
#include "backends/memory/locked_slot.hpp"
#include "sluice/extend/conclude.hpp"

namespace sluice::memory {

void Engine::execute_rule(const Plan& plan, Completion& done) noexcept {
  if (const PlanFault fault = find_fault(plan); fault.error) return done.fail(fault.error);
  const Step& step = plan.steps().front();
  RuleResult result;
  decide_rule(step, id_of(step), result);
  detail::BlockedCall* const call = detail::BlockedCall::of(done);
  if (call == nullptr) {
    return conclude(plan.steps(), {&result.verdict, 1}, result.effects.output(), to_time(result.at),
                    Source::memory, done);
  }
  Answer answer{*call->decision};
  answer.put(step, result.verdict, result.at);
  if (answer.status < 0) return call->finish(done, error_of(answer.status));
  const std::span<const Word> output = result.effects.output();
  if (step.operation->names_part) {
    call->decision->part = static_cast<std::uint16_t>(output.front());
  }
  call->finish(done, no_error_, output);
}

void Engine::RuleResult::decide(const Step& step, std::span<const Word> words) noexcept {
  effects.clear();
  // Constructed in place: see sluice::run().
  ::new (&verdict) Verdict(run(*step.operation, words, {step.args, step.table}, at, effects));
}

void Engine::decide_rule(const Step& step, const SlotId& id, RuleResult& result) noexcept {
  const bool bound = is_bound(step);
  Slot* slot = bound ? slot_of(step) : nullptr;
  if (slot == nullptr) table_.prefetch(id.hash);
  Pause pause;
  for (;; slot = nullptr, pause()) {
    if (slot == nullptr) {
      const Table::Place place = table_.find(id);
      slot = place.slot;
      if (slot == nullptr) slot = claim(step, id, place.room, result);
      if (slot == nullptr) return;
    }
    if (is_cell(id.kind) ? rule_in_cell(*slot, step, id, result)
                         : rule_in_block(*slot, step, id, result)) {
      if (bound) remember(*step.binding, *slot);
      return;
    }
  }
}

/// Claims a slot for a key without one, if the rule would change its state; else decides here.
Slot* Engine::claim(const Step& step, const SlotId& id, bool room, RuleResult& result) noexcept {
  result.at = to_word(clock_->now());
  if (room) {
    result.decide(step, StateWords{});
    if (!result.changes()) return nullptr;
    if (Slot* const slot = table_.find_or_claim(id, soon(result.at))) {
      name(*slot, id, step.key);
      return slot;
    }
  }
  const std::lock_guard lock(stripes_[stripe_of(id)]);
  if (Slot* const slot = table_.find(id).slot) return slot;
  const Seed first = first_state(step, id, result.at);
  result.decide(step, first.state);
  if (!result.changes()) return nullptr;
  Slot* const slot = take_over(id, first, result.at);
  if (slot == nullptr) {
    count(&Counters::rejected);
    result.verdict = Verdict::failed(Errc::store_full);
  } else {
    name(*slot, id, step.key);
  }
  return slot;
}

/// Decides in a slot that belonged to the key a moment ago. False if it no longer does: nothing was
/// decided.
bool Engine::rule_in_cell(Slot& slot, const Step& step, const SlotId& id,
                          RuleResult& result) noexcept {
  result.at = to_word(clock_->now());
  Slot::Snapshot seen = slot.snapshot();
  if (!id.owns(seen.identity)) return rule_on_mismatch(slot, seen.identity, id, result);
  for (std::uint64_t conflicts = 0;; ++conflicts) {
    if (state::is_special(seen.state)) {
      seen.state = await(slot, seen.state);
      if (state::is_special(seen.state)) return false;
    }
    const Pair before = seen.state;
    StateWords words = state::words(before);
    result.decide(step, words);
    if (result.verdict.status == Verdict::allowed) result.effects.make(words);
    const Pair next = state::next(words, before);
    if (next != before) slot.keep_until(id, result.kept_until(*this, step));
    if (next == before || slot.state.exchange(seen.state, next)) {
      if (conflicts != 0) count(&Counters::conflicts, conflicts);
      return true;
    }
    if (!state::same_owner(seen.state, before)) return false;
  }
}

/// The same for a state in a block.
bool Engine::rule_in_block(Slot& slot, const Step& step, const SlotId& id,
                           RuleResult& result) noexcept {
  ContentionStats contention;
  LockedSlot locked_slot{&slot, id};
  const bool mine = locked_slot.hold(contention);
  count(contention);
  if (!mine) return false;
  result.at = to_word(clock_->now());
  if (locked_slot.kind != id.kind) {
    locked_slot.let_go();
    return rule_on_mismatch(slot, slot.snapshot().identity, id, result);
  }
  result.decide(step, locked_slot.state(blocks_));
  const std::size_t extent = result.effects.extent();
  if (!result.changes()) {
    locked_slot.let_go();
  } else if (!secure(locked_slot, extent, result.at)) {
    locked_slot.let_go();
    count(&Counters::rejected);
    result.verdict = Verdict::failed(Errc::store_full);
  } else {
    result.effects.make(locked_slot.grow(blocks_, extent));
    locked_slot.until = std::max(locked_slot.until, result.kept_until(*this, step));
    locked_slot.let_go_changed();
    blocks_.refund(locked_slot.larger);
  }
  return true;
}

/// A slot with another owner or kind; see decide_on_mismatch().
bool Engine::rule_on_mismatch(Slot& slot, const Pair& identity, const SlotId& id,
                              RuleResult& result) noexcept {
  if (!id.matches(identity.low, identity.high)) return false;
  if (change_kind(slot, id, result.at)) return false;
  result.verdict = Verdict::wrong_kind(Slot::kind(identity.high));
  return true;
}

/// Allocates a block for the growth of `locked`. False if there is none.
bool Engine::secure(LockedSlot& locked_slot, std::size_t words, Word now) noexcept {
  if (words <= Blocks::room(Extent(locked_slot.words).block)) return true;
  locked_slot.larger = blocks_.take(words);
  if (locked_slot.larger == 0 && reclaim(now)) locked_slot.larger = blocks_.take(words);
  return locked_slot.larger != 0;
}

/// Frees the blocks of expired states in a part of the table, the next part each time. True if
/// there were any.
bool Engine::reclaim(Word now) noexcept {
  constexpr std::size_t stretch = 4096;
  bool any = false;
  const std::lock_guard lock(reclaim_lock_);
  for (std::size_t i = std::min(stretch, table_.size()); i > 0; --i) {
    const BlockId block = table_.take_block(reclaim_at_, tick(now));
    blocks_.refund(block);
    any = any || block != 0;
    if (++reclaim_at_ == table_.size()) reclaim_at_ = 0;
  }
  return any;
}

}  // namespace sluice::memory
