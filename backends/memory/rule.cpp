// One step by a rule that leaves effects. A cell is exchanged, as for the rules of crowded keys and
// bound ones; a state in a block is decided by the thread that holds its slot.
#include <new>

#include "backends/memory/engine.hpp"
#include "backends/memory/held.hpp"

namespace sluice::memory {

void Engine::execute_rule(const Plan& plan, Completion& done) noexcept {
  if (const PlanFault fault = find_fault(plan); fault.error) return done.fail(fault.error);
  const Step& step = plan.steps().front();
  Ruling ruling;
  decide_rule(step, mark_of(step), ruling);
  Decision* const place = done.place();
  if (place == nullptr) {
    return conclude(plan.steps(), {&ruling.verdict, 1}, ruling.effects.details(),
                    to_time(ruling.at), Source::memory, done);
  }
  Answer answer{*place};
  answer.put(step, ruling.verdict, ruling.at);
  if (answer.status < 0) return done.placed(error_of(answer.status));
  const std::span<const Word> details = ruling.effects.details();
  if (step.operation->names_part) place->part = static_cast<std::uint16_t>(details.front());
  done.placed(no_error_, details);
}

void Engine::Ruling::decide(const Step& step, std::span<const Word> words) noexcept {
  effects.clear();
  // Made in its place: see sluice::run().
  ::new (&verdict) Verdict(run(*step.operation, words, {step.args, step.table}, at, effects));
}

void Engine::decide_rule(const Step& step, const Mark& mark, Ruling& ruling) noexcept {
  const bool bound = is_bound(step);
  auto* slot = bound ? static_cast<Slot*>(step.binding->slot.load(
                           std::memory_order_relaxed))  // a guess: see bind()
                     : nullptr;
  if (slot == nullptr) table_.prefetch(mark.hash);
  Pause pause;
  for (;; slot = nullptr, pause()) {
    if (slot == nullptr) {
      const Table::Place place = table_.find(mark);
      slot = place.slot;
      if (slot == nullptr) slot = claim(step, mark, place.room, ruling);
      if (slot == nullptr) return;
    }
    if (is_cell(mark.kind) ? rule_in_cell(*slot, step, mark, ruling)
                           : rule_in_block(*slot, step, mark, ruling)) {
      if (bound) remember(*step.binding, *slot);
      return;
    }
  }
}

/// A slot for a key that has none, if the rule would change its state; else decides here.
Slot* Engine::claim(const Step& step, const Mark& mark, bool room, Ruling& ruling) noexcept {
  ruling.at = to_word(clock_->now());
  if (room) {
    ruling.decide(step, StateWords{});
    if (!ruling.changes()) return nullptr;
    if (Slot* const slot = table_.find_or_claim(mark, soon(ruling.at))) return slot;
  }
  const std::lock_guard lock(stripes_[stripe_of(mark)]);
  if (Slot* const slot = table_.find(mark).slot) return slot;
  const Seed first = first_state(step, mark, ruling.at);
  ruling.decide(step, first.state);
  if (!ruling.changes()) return nullptr;
  Slot* const slot = take_over(mark, first, ruling.at);
  if (slot == nullptr) {
    count(&Counters::rejected);
    ruling.verdict = Verdict::failed(Errc::store_full);
  }
  return slot;
}

/// Decides in a slot that was the key's a moment ago. False if it is no more: nothing was decided.
bool Engine::rule_in_cell(Slot& slot, const Step& step, const Mark& mark, Ruling& ruling) noexcept {
  ruling.at = to_word(clock_->now());
  Slot::Snapshot seen = slot.snapshot();
  if (!mark.owns(seen.identity)) return rule_strange(slot, seen.identity, mark, ruling);
  for (std::uint64_t conflicts = 0;; ++conflicts) {
    if (state::is_special(seen.state)) {
      seen.state = await(slot, seen.state);
      if (state::is_special(seen.state)) return false;
    }
    const Pair before = seen.state;
    StateWords words = state::words(before);
    ruling.decide(step, words);
    if (ruling.verdict.status == Verdict::allowed) ruling.effects.make(words);
    const Pair next = state::next(words, before);
    if (next != before) slot.keep_until(mark, ruling.kept_until(*this, step));
    if (next == before || slot.state.exchange(seen.state, next)) {
      if (conflicts != 0) count(&Counters::conflicts, conflicts);
      return true;
    }
    if (!state::same_owner(seen.state, before)) return false;
  }
}

/// The same where the state lies in a block.
bool Engine::rule_in_block(Slot& slot, const Step& step, const Mark& mark,
                           Ruling& ruling) noexcept {
  Meetings meetings;
  Held held{&slot, mark};
  const bool mine = held.hold(meetings);
  count(meetings);
  if (!mine) return false;
  ruling.at = to_word(clock_->now());
  if (held.kind != mark.kind) {
    held.let_go();
    return rule_strange(slot, slot.snapshot().identity, mark, ruling);
  }
  ruling.decide(step, held.state(blocks_));
  const std::size_t extent = ruling.effects.extent();
  if (!ruling.changes()) {
    held.let_go();
  } else if (!secure(held, extent, ruling.at)) {
    held.let_go();
    count(&Counters::rejected);
    ruling.verdict = Verdict::failed(Errc::store_full);
  } else {
    ruling.effects.make(held.grow(blocks_, extent));
    held.until = std::max(held.until, ruling.kept_until(*this, step));
    held.let_go_changed();
    blocks_.give_back(held.larger);
  }
  return true;
}

/// A slot that is not this key's with this kind; see decide_strange().
bool Engine::rule_strange(Slot& slot, const Pair& identity, const Mark& mark,
                          Ruling& ruling) noexcept {
  if (!mark.matches(identity.low, identity.high)) return false;
  if (change_kind(slot, mark, ruling.at)) return false;
  ruling.verdict = Verdict::failed(Errc::wrong_kind);
  return true;
}

/// A block for what `held` will need. False if there is none.
bool Engine::secure(Held& held, std::size_t words, Word now) noexcept {
  if (words <= Blocks::room(Extent(held.words).block)) return true;
  held.larger = blocks_.take(words);
  if (held.larger == 0 && reclaim(now)) held.larger = blocks_.take(words);
  return held.larger != 0;
}

/// Frees blocks of states that mean nothing any more, in a stretch of the table: the next one each
/// time. True if there were any.
bool Engine::reclaim(Word now) noexcept {
  constexpr std::size_t stretch = 4096;
  bool any = false;
  const std::lock_guard lock(reclaim_lock_);
  for (std::size_t i = std::min(stretch, table_.size()); i > 0; --i) {
    const BlockId block = table_.take_block(reclaim_at_, quarter(now));
    blocks_.give_back(block);
    any = any || block != 0;
    if (++reclaim_at_ == table_.size()) reclaim_at_ = 0;
  }
  return any;
}

}  // namespace sluice::memory
