// The lock-free path: a key in its own slot, or one that finds an empty slot.
#include "backends/memory/engine.hpp"
#include "src/util/siphash.hpp"

namespace sluice::memory {

Engine::Hash Engine::hash(const Key& key) const noexcept {
  return detail::SipHash13(secret_)(key.tag(), key.name(), key.unit());
}

SlotId Engine::id_of(const Step& step) const noexcept {
  if (!is_bound(step)) return {hash(step.key), step.operation->kind};
  // Word by word, which the compiler does not do by itself. If the hash was just written, a load
  // across both stores stalls until they have left the processor's store buffer, after all that the
  // last decision waits for; and the prefetch depends on it.
  const auto word = [&step](std::size_t i) noexcept {
    return __atomic_load_n(&step.binding->hash[i], __ATOMIC_RELAXED);  // see bind()
  };
  return {{word(0), word(1)}, step.operation->kind};
}

/// Decides from the snapshot `seen` of the slot, unless that needs the fine clock or another thread
/// was first.
[[gnu::always_inline]] inline Engine::Try Engine::try_in(Slot& slot, Slot::Snapshot& seen,
                                                         const Step& step, const SlotId& id,
                                                         const Reading& reading,
                                                         Answer& answer) noexcept {
  StateWords words = state::words(seen.state);
  const Verdict verdict = reading.decide(*step.operation, words, step.args);
  if (verdict.status == Verdict::unsettled) [[unlikely]] {
    return Try::unsettled;
  }
  if (verdict.status == Verdict::allowed) [[likely]] {  // a refusal has not changed the state
    const Pair next = state::next(words, seen.state);
    if (next != seen.state) [[likely]] {
      const Word until = reading.latest() + verdict.reset_after;
      if (until > instant(Slot::idle_at(seen.identity.high))) [[unlikely]] {
        slot.keep_until(id, tick_after(until));
      }
      if (!slot.state.exchange(seen.state, next)) [[unlikely]] {
        return Try::conflict;
      }
    }
  }
  answer.put(step, verdict, reading.latest());
  return Try::decided;
}

/// Decides in a slot that belonged to the key a moment ago. False if it no longer does: nothing was
/// decided.
bool Engine::decide_in(Slot& slot, const Step& step, const SlotId& id, Reading& reading,
                       Answer& answer) noexcept {
  Slot::Snapshot seen = slot.snapshot();
  if (!id.owns(seen.identity)) [[unlikely]] {
    return decide_on_mismatch(slot, seen.identity, step, id, reading, answer);
  }
  for (std::uint64_t conflicts = 0;;) {
    if (state::is_special(seen.state)) [[unlikely]] {
      seen.state = await(slot, seen.state);
      if (state::is_special(seen.state)) return false;
    }
    const Pair before = seen.state;
    const Try result = try_in(slot, seen, step, id, reading, answer);
    if (result == Try::decided) {
      if (conflicts != 0) count(&Counters::conflicts, conflicts);
      return true;
    }
    if (result == Try::unsettled) {
      reading.refine();
      continue;
    }
    ++conflicts;
    step_back();
    seen.state = slot.snapshot().state;
    if (!state::same_owner(seen.state, before)) return false;
  }
}

/// A slot with another owner or kind: of another key, or of the same key with another kind of
/// state.
bool Engine::decide_on_mismatch(Slot& slot, const Pair& identity, const Step& step,
                                const SlotId& id, const Reading& reading, Answer& answer) noexcept {
  if (!id.matches(identity.low, identity.high)) return false;
  answer.status = step.operation->check(step.args);
  if (answer.status < 0) return true;
  if (change_kind(slot, id, reading.latest())) return false;
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
  if (!is_fast(plan)) [[unlikely]] {
    return execute_other(plan, done);
  }
  detail::BlockedCall* const call = detail::BlockedCall::of(done);
  if (call == nullptr) [[unlikely]] {
    return execute_elsewhere(plan, done);
  }
  call->finish(done, error_of(decide_one(plan.steps().front(), *call->decision)));
}

/// Decides a plan other than one step by a rule with apply().
void Engine::execute_other(const Plan& plan, Completion& done) noexcept {
  if (plan.steps().size() == 1 && !plan.id()) return execute_rule(plan, done);
  execute_plan(plan, done);
}

/// execute() where the caller has no Completion::place().
void Engine::execute_elsewhere(const Plan& plan, Completion& done) noexcept {
  Decision decision;
  std::error_code error;
  detail::BlockedCall call{&decision, &error};
  execute(plan, call.completion());
  done({error, decision, {&decision, error ? 0U : 1U}, {}});
}

/// Decides a plan of one step and returns its status. The first attempt for a bound key is inlined
/// here; rare cases are in other functions, so that they cost no register here.
[[gnu::always_inline]] inline Word Engine::decide_one(const Step& step,
                                                      Decision& decision) noexcept {
  if (!is_bound(step)) return decide_named(step, decision);
  auto* const slot =
      static_cast<Slot*>(step.binding->slot.load(std::memory_order_relaxed));  // a hint: see bind()
  if (slot == nullptr) [[unlikely]] {
    return decide_named(step, decision);
  }
  const bool fine =
      step.binding->fine.load(std::memory_order_relaxed);  // a hint: see decide_after_conflict()
  const Reading reading(*clock_, *step.operation, coarse_ && !fine);
  const SlotId id{step.binding->hash, step.operation->kind};
  Slot::Snapshot seen;
  Answer answer{decision};
  Try first = Try::unread;
  if (slot->try_snapshot(seen) && id.owns(seen.identity) && !state::is_special(seen.state))
      [[likely]] {
    first = try_in(*slot, seen, step, id, reading, answer);
  }
  if (first != Try::decided) [[unlikely]] {
    return decide_after_conflict(*slot, step, reading, first, decision);
  }
  if (fine) [[unlikely]] {
    hurry(step, decision);
  }
  return answer.status;
}

/// After a decision by the fine clock: lets the next one use the coarse clock, if that would have
/// sufficed now.
void Engine::hurry(const Step& step, const Decision& decision) const noexcept {
  const Span left = decision.allowed ? decision.reset_after : decision.retry_after;
  if (left > 2 * Clock::coarse_lag) {
    step.binding->fine.store(false,
                             std::memory_order_relaxed);  // a hint: see decide_after_conflict()
  }
}

/// Continues after a first attempt without a decision.
Word Engine::decide_after_conflict(Slot& slot, const Step& step, Reading reading, Try first,
                                   Decision& decision) noexcept {
  if (first == Try::conflict) {
    count(&Counters::conflicts);
    step_back();
  } else if (first == Try::unsettled) {
    reading.refine();
    // A hint for the next time, which any thread may write and none must see.
    step.binding->fine.store(true, std::memory_order_relaxed);  // see above
  }
  Answer answer{decision};
  const SlotId id{step.binding->hash, step.operation->kind};
  const bool decided = decide_in(slot, step, id, reading, answer);
  return decided ? answer.status : decide_named(step, decision);
}

/// The path through the table: without branches if the key is in its first line, as most are. The
/// processor then begins the next decision, and its memory accesses, before those of this one have
/// completed.
Word Engine::decide_named(const Step& step, Decision& decision) noexcept {
  if (!is_bound(step) && !is_valid(step.key)) return -static_cast<Word>(Errc::invalid_key);
  const SlotId id = id_of(step);
  Slot* const line = table_.prefetch(id.hash);
  // The fine clock costs little here: the slot, which is probably not in the cache, is loaded
  // meanwhile.
  const Reading reading(*clock_);
  Slot& slot = Table::guess(line, id);
  Slot::Snapshot seen;
  if (slot.try_snapshot(seen) && id.owns(seen.identity) && !state::is_special(seen.state))
      [[likely]] {
    Answer answer{decision};
    if (try_in(slot, seen, step, id, reading, answer) == Try::decided) [[likely]] {
      if (is_bound(step)) remember(*step.binding, slot);
      return answer.status;
    }
    count(&Counters::conflicts);  // with the fine clock there is no other cause
    step_back();
  }
  return decide_after_miss(step, decision, id.hash, reading.latest());
}

/// Continues after decide_named() without a decision. Takes values, which its caller has in
/// registers.
Word Engine::decide_after_miss(const Step& step, Decision& decision, Hash hash, Word now) noexcept {
  Reading reading(*clock_, now);
  Answer answer{decision};
  decide(step, {hash, step.operation->kind}, reading, answer);
  return answer.status;
}

void Engine::decide(const Step& step, const SlotId& id, Reading& reading, Answer& answer) noexcept {
  Pause pause;  // a thread that is assigning the slot to another key may need this core
  for (;; pause()) {
    const Table::Place place = table_.find(id);
    Slot* slot = place.slot;
    if (slot == nullptr) {
      answer.status = step.operation->check(step.args);
      if (answer.status < 0) return;
      if (!is_cell(id.kind)) return answer.fail(Errc::unsupported_operation);
      if (!place.room) return decide_overflow(step, id, reading, answer);
      if (!step.operation->writes) return decide_absent(step, {}, reading, answer);
      slot = table_.find_or_claim(id, soon(reading.latest()));
      if (slot == nullptr) continue;  // other threads took the empty slots
    }
    if (decide_in(*slot, step, id, reading, answer)) {
      if (is_bound(step)) remember(*step.binding, *slot);
      return;
    }
  }
}

void Engine::decide_absent(const Step& step, const StateWords& state, const Reading& reading,
                           Answer& answer) noexcept {
  StateWords words = state;
  answer.put(step, step.operation->apply(words, step.args, reading.latest()), reading.latest());
}

}  // namespace sluice::memory
