// The most frequent call: token_bucket.acquire for a caller that waits for the answer. Its usual
// course has no plan, no completion, no loop and no call of the kernel; what is rare continues in
// decide_at(). Which operation has this path is known here only.
#include "backends/memory/engine.hpp"
#include "sluice/decide.hpp"
#include "src/rules/token_bucket_kernel.hpp"

namespace sluice::memory {

/// Decides from one reading of the slot, with a clock that may lag by up to `lag`. An exchange
/// succeeds only if the reading was a state of the key, since the generation is then the same as
/// before the identity was read; without one, the reading is checked.
template <Word lag>
[[gnu::always_inline]] inline Engine::Try Engine::attempt(Slot& slot, const Step& step,
                                                          const SlotId& id, Word now,
                                                          Verdict& verdict) noexcept {
  const Slot::Snapshot seen = slot.glance();
  if (!id.owns(seen.identity) || state::is_special(seen.state)) [[unlikely]] {
    return Try::elsewhere;
  }
  token_bucket::State after{state::level(seen.state), state::stamp(seen.state)};
  verdict = token_bucket::taken(after, token_bucket::args_of(step.args), now, lag);
  if (verdict.status == Verdict::allowed) [[likely]] {
    const Word until = now + verdict.reset_after;
    if (until > instant(Slot::idle_at(seen.identity.high))) [[unlikely]] {
      slot.keep_until(id, tick_after(until));
    }
    const Pair next = state::next({after.spent, after.stamp}, seen.state);
    return slot.state.try_exchange(seen.state, next) ? Try::decided : Try::conflict;
  }
  if (verdict.status == Verdict::unsettled) return Try::unsettled;
  return verdict.status == Verdict::refused && slot.confirms(seen) ? Try::decided : Try::elsewhere;
}

/// A bound key by the coarse clock, if the fine one could not decide otherwise.
[[gnu::always_inline]] inline Decision Engine::acquire_coarse(const Step& step,
                                                              std::error_code& error) noexcept {
  const SlotId id = bound_id(step, StateKind::token_bucket);
  const Word now = to_word(clock_->coarse_now());
  Verdict verdict;
  const Try tried = attempt<Clock::coarse_lag.count()>(*slot_of(step), step, id, now, verdict);
  if (tried == Try::decided) [[likely]] {
    error = no_error_;
    return decision_of(step, verdict, now);
  }
  if (tried == Try::unsettled) {
    // A hint for the next time, which any thread may write and none must see.
    step.binding->fine.store(true, std::memory_order_relaxed);  // see above
  }
  return decide_after(tried, step, id.hash[0], id.hash[1], to_word(clock_->now()), error);
}

Decision Engine::decide_one(const Step& step, std::error_code& error) noexcept {
  if (step.operation != &token_bucket_acquire || clock_life_.is_over()) [[unlikely]] {
    return Store::decide_one(step, error);
  }
  if (!is_bound(step) || slot_of(step) == nullptr) return acquire_named(step, error);
  // A hint: see acquire_coarse().
  return step.binding->fine.load(std::memory_order_relaxed) ? acquire_fine(step, error)
                                                            : acquire_coarse(step, error);
}

/// A bound key by the fine clock.
Decision Engine::acquire_fine(const Step& step, std::error_code& error) noexcept {
  const SlotId id = bound_id(step, StateKind::token_bucket);
  const Word now = to_word(clock_->now());
  Verdict verdict;
  const Try tried = attempt<0>(*slot_of(step), step, id, now, verdict);
  if (tried != Try::decided) [[unlikely]] {
    return decide_after(tried, step, id.hash[0], id.hash[1], now, error);
  }
  // Lets the next decision use the coarse clock, if that would have sufficed now.
  const Word left = verdict.status == Verdict::allowed ? verdict.reset_after : verdict.retry_after;
  if (coarse_ && left > 2 * Clock::coarse_lag.count()) {
    step.binding->fine.store(false, std::memory_order_relaxed);  // a hint: see acquire_coarse()
  }
  error = no_error_;
  return decision_of(step, verdict, now);
}

/// A key whose slot is not known: without branches if it is in the first line of its look-up, as
/// most are. The processor then begins the next decision, and its memory accesses, before those of
/// this one have completed.
Decision Engine::acquire_named(const Step& step, std::error_code& error) noexcept {
  const bool bound = is_bound(step);
  if (!bound && !is_valid(step.key)) [[unlikely]] {
    return Store::decide_one(step, error);
  }
  const SlotId id = bound ? bound_id(step, StateKind::token_bucket)
                          : SlotId{hash(step.key), StateKind::token_bucket};
  Slot* const line = table_.prefetch(id.hash);
  // While the slot is loaded, which is probably not in the cache, the clock costs little.
  const Word now = to_word(clock_->now());
  Slot& slot = Table::guess(line, id);
  Verdict verdict;
  const Try tried = attempt<0>(slot, step, id, now, verdict);
  if (tried != Try::decided) [[unlikely]] {
    return decide_after(tried, step, id.hash[0], id.hash[1], now, error);
  }
  if (bound) remember(*step.binding, slot);
  error = no_error_;
  return decision_of(step, verdict, now);
}

/// Continues after an attempt that did not decide. Takes words, which its callers have in
/// registers.
Decision Engine::decide_after(Try tried, const Step& step, std::uint64_t hash_low,
                              std::uint64_t hash_high, Word now, std::error_code& error) noexcept {
  if (tried == Try::conflict) {
    count(&Counters::conflicts);
    step_back();
  }
  Decision decision;
  const SlotId id{{hash_low, hash_high}, StateKind::token_bucket};
  error = error_of(decide_at(step, id, now, decision));
  if (error) detail::note_reason(error, nullptr, decision);
  return decision;
}

}  // namespace sluice::memory
