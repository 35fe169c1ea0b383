// The lock-free way: a key in a slot of its own, or one that still finds an empty slot.
#include "sluice/memory_store.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "backends/memory/engine.hpp"
#include "src/siphash.hpp"

namespace sluice::memory {
namespace {

constexpr std::size_t most_keys = std::size_t{1} << 32;
constexpr std::size_t fewest_shared = 64;

std::size_t shared_for(std::size_t keys) noexcept { return std::max(fewest_shared, keys / 64); }

const MemoryOptions& validated(const MemoryOptions& options) {
  if (options.max_keys < 1 || options.max_keys > most_keys) {
    throw std::invalid_argument("MemoryOptions::max_keys must be 1 to 2^32, got " +
                                std::to_string(options.max_keys));
  }
  if (const std::size_t needed = Engine::bytes_for(options); needed > options.max_bytes) {
    throw std::invalid_argument("MemoryOptions::max_bytes must be " + std::to_string(needed) +
                                " or more for " + std::to_string(options.max_keys) + " keys, got " +
                                std::to_string(options.max_bytes));
  }
  return options;
}

std::array<std::uint64_t, 2> draw_secret(Rng* rng) {
  SystemRng system;
  Rng& source = rng != nullptr ? *rng : system;
  const std::uint64_t first = source.next();
  return {first, source.next()};
}

bool is_one(const Plan& plan) noexcept { return plan.steps().size() == 1; }

}  // namespace

std::size_t Engine::bytes_for(const MemoryOptions& options) noexcept {
  return Table::bytes_for(options.max_keys) + Table::bytes_for(shared_for(options.max_keys)) +
         sizeof(Engine);
}

Engine::Engine(const MemoryOptions& options)
    : table_(validated(options).max_keys),
      overflow_(shared_for(options.max_keys)),
      clock_(options.clock),
      own_clock_(options.clock == nullptr ? std::make_unique<SystemClock>() : nullptr),
      // A virtual clock has no cheaper reading.
      coarse_(options.coarse_clock && dynamic_cast<VirtualClock*>(options.clock) == nullptr),
      secret_(draw_secret(options.rng)) {
  if (clock_ == nullptr) clock_ = own_clock_.get();
  start_ = to_word(clock_->now());
}

Engine::Hash Engine::hash(const Key& key) const noexcept {
  return detail::SipHash13(secret_)(key.tag, key.name);
}

Mark Engine::mark_of(const Step& step) const noexcept {
  return {is_bound(step) ? step.binding->hash : hash(step.key), step.operation->kind};
}

void Engine::bind(const Key& key, Binding& binding) noexcept {
  if (!is_valid(key)) return;
  binding.owner = this;
  binding.hash = hash(key);
  // Relaxed, here and wherever a binding's slot is read or written: the pointer is a guess. It
  // points into this store's table, which lives as long as the store, and what the slot holds is
  // compared with the hash each time it is used.
  binding.slot.store(nullptr, std::memory_order_relaxed);  // see above
}

/// Decides by what was `seen` in the slot, unless it takes the fine clock or another thread was
/// first; `seen` is then what that thread wrote.
[[gnu::always_inline]] inline Engine::Try Engine::try_in(Slot& slot, Slot::Snapshot& seen,
                                                         const Step& step, const Mark& mark,
                                                         const Reading& reading,
                                                         Answer& answer) noexcept {
  StateWords words = state::words(seen.state);
  const Verdict verdict = reading.decide(*step.operation, words, step.args);
  if (verdict.status == Verdict::unsettled) [[unlikely]] {
    return Try::unsettled;
  }
  if (verdict.status == Verdict::allowed) [[likely]] {  // a refusal has left the state alone
    const Pair next = state::next(words, seen.state);
    if (next != seen.state) [[likely]] {
      const Word until = reading.latest() + verdict.reset_after;
      if (until > instant(Slot::idle_at(seen.identity.high))) [[unlikely]] {
        slot.keep_until(mark, quarter_after(until));
      }
      if (!slot.state.exchange(seen.state, next)) [[unlikely]] {
        return Try::conflict;
      }
    }
  }
  answer.put(step, verdict, reading.latest());
  return Try::decided;
}

/// Decides in a slot that was the key's a moment ago. False if it is no more: nothing was decided.
bool Engine::decide_in(Slot& slot, const Step& step, const Mark& mark, Reading& reading,
                       Answer& answer) noexcept {
  Slot::Snapshot seen = slot.snapshot();
  if (!mark.owns(seen.identity)) [[unlikely]] {
    return decide_strange(seen.identity, step, mark, answer);
  }
  for (std::uint64_t conflicts = 0;;) {
    if (state::is_special(seen.state)) [[unlikely]] {
      seen.state = await(slot, seen.state);
      if (state::is_special(seen.state)) return false;
    }
    const Pair before = seen.state;
    const Try result = try_in(slot, seen, step, mark, reading, answer);
    if (result == Try::decided) {
      if (conflicts != 0) count(&Counters::conflicts, conflicts);
      return true;
    }
    if (result == Try::unsettled) {
      reading.refine();
      continue;
    }
    ++conflicts;
    if (!state::same_owner(seen.state, before)) return false;
  }
}

/// A slot that is not this key's with this kind: another key's, or one that the key uses wrongly.
bool Engine::decide_strange(const Pair& identity, const Step& step, const Mark& mark,
                            Answer& answer) noexcept {
  if (!mark.matches(identity.low, identity.high)) return false;
  answer.status = step.operation->check(step.args);
  if (answer.status >= 0) answer.fail(Errc::wrong_kind);
  return true;
}

/// Waits for a plan that holds the slot, and returns what is there then. It is special if the owner
/// has changed.
Pair Engine::await(const Slot& slot, Pair before) noexcept {
  Pause pause;
  for (; state::level(before) != state::dead; pause()) {
    const Pair seen = slot.snapshot().state;
    if (!state::same_owner(seen, before)) break;
    if (!state::is_special(seen)) return seen;
  }
  return state::make(state::dead, 0, 0);
}

void Engine::execute(const Plan& plan, Completion done) noexcept {
  if (!is_one(plan)) [[unlikely]] {
    return execute_plan(plan, done);
  }
  Decision* const place = done.place();
  if (place == nullptr) [[unlikely]] {
    return execute_elsewhere(plan, done);
  }
  done.placed(error_of(decide_one(plan.steps().front(), *place)));
}

/// execute() where the decision has no place yet.
void Engine::execute_elsewhere(const Plan& plan, Completion& done) noexcept {
  Decision decision;
  std::error_code error;
  Completion::Blocked blocked{&decision, &error};
  execute(plan, Completion(blocked));
  done({error, decision, {&decision, error ? 0U : 1U}});
}

/// Decides a plan of one step and returns its status. Here is the first try for a bound key, in a
/// straight line; whatever is rare goes the longer ways, so that it costs no register here.
[[gnu::always_inline]] inline Word Engine::decide_one(const Step& step,
                                                      Decision& decision) noexcept {
  if (!is_bound(step)) return decide_named(step, decision);
  auto* const slot = static_cast<Slot*>(
      step.binding->slot.load(std::memory_order_relaxed));  // a guess: see bind()
  if (slot == nullptr) [[unlikely]] {
    return decide_named(step, decision);
  }
  const bool fine =
      step.binding->fine.load(std::memory_order_relaxed);  // a guess: see decide_again()
  const Reading reading(*clock_, *step.operation, coarse_ && !fine);
  const Mark mark{step.binding->hash, step.operation->kind};
  Slot::Snapshot seen;
  Answer answer{decision};
  Try first = Try::unread;
  if (slot->try_snapshot(seen) && mark.owns(seen.identity) && !state::is_special(seen.state))
      [[likely]] {
    first = try_in(*slot, seen, step, mark, reading, answer);
  }
  if (first != Try::decided) [[unlikely]] {
    return decide_again(*slot, step, reading, first, decision);
  }
  if (fine) [[unlikely]] {
    hurry(step, decision);
  }
  return answer.status;
}

/// After a decision by the fine clock: tries the cheap one next time, if now it would have served.
void Engine::hurry(const Step& step, const Decision& decision) const noexcept {
  const Span left = decision.allowed ? decision.reset_after : decision.retry_after;
  if (left > 2 * Clock::coarse_lag) {
    step.binding->fine.store(false, std::memory_order_relaxed);  // a guess: see decide_again()
  }
}

/// Goes on after a first try that has not decided.
Word Engine::decide_again(Slot& slot, const Step& step, Reading reading, Try first,
                          Decision& decision) noexcept {
  if (first == Try::unsettled) {
    reading.refine();
    // A guess for the next time, which any thread may make and none needs to see.
    step.binding->fine.store(true, std::memory_order_relaxed);  // see above
  }
  Answer answer{decision};
  const Mark mark{step.binding->hash, step.operation->kind};
  const bool decided = decide_in(slot, step, mark, reading, answer);
  if (first == Try::conflict) count(&Counters::conflicts);
  return decided ? answer.status : decide_named(step, decision);
}

/// The way through the table.
Word Engine::decide_named(const Step& step, Decision& decision) noexcept {
  Answer answer{decision};
  if (is_bound(step) || is_valid(step.key)) {
    const Mark mark = mark_of(step);
    table_.prefetch(mark.hash);
    // The fine clock costs nothing here: the slot, which is probably not in the cache, comes
    // meanwhile.
    Reading reading(*clock_);
    decide(step, mark, reading, answer);
  } else {
    answer.fail(Errc::invalid_key);
  }
  return answer.status;
}

void Engine::decide(const Step& step, const Mark& mark, Reading& reading, Answer& answer) noexcept {
  for (;;) {
    const Table::Place place = table_.find(mark);
    Slot* slot = place.slot;
    if (slot == nullptr) {
      answer.status = step.operation->check(step.args);
      if (answer.status < 0) return;
      if (!place.room) return decide_crowded(step, mark, reading, answer);
      if (!step.operation->writes) return decide_absent(step, {}, reading, answer);
      slot = table_.find_or_claim(mark, soon(reading.latest()));
      if (slot == nullptr) continue;  // others took what was empty
    }
    if (decide_in(*slot, step, mark, reading, answer)) {
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

/// Asks for the memory where `step` will be decided, and returns its mark.
Mark Engine::prefetch(const Step& step) const noexcept {
  const Mark mark = mark_of(step);
  const void* const slot =
      is_bound(step) ? step.binding->slot.load(std::memory_order_relaxed)  // a guess: see bind()
                     : nullptr;
  if (slot != nullptr) {
    __builtin_prefetch(slot, 1);
  } else {
    table_.prefetch(mark.hash);
  }
  return mark;
}

/// Decides a step of a batch, at the instant of its `reading`, and returns its status.
Word Engine::decide_at(const Step& step, const Mark& mark, Reading& reading,
                       Decision& decision) noexcept {
  Answer answer{decision};
  if (is_bound(step)) {
    auto* const slot = static_cast<Slot*>(
        step.binding->slot.load(std::memory_order_relaxed));  // a guess: see bind()
    if (slot == nullptr || !decide_in(*slot, step, mark, reading, answer)) {
      decide(step, mark, reading, answer);
    }
  } else if (is_valid(step.key)) {
    decide(step, mark, reading, answer);
  } else {
    answer.fail(Errc::invalid_key);
  }
  return answer.status;
}

/// Decides up to `ahead` plans: asks for the memory of all, reads the clock once, then decides.
void Engine::execute_run(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  std::array<Mark, ahead> marks;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (is_one(plans[i])) marks[i] = prefetch(plans[i].steps().front());
  }
  Reading reading(*clock_);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!is_one(plans[i])) {
      execute_plan(plans[i], done[i]);
      continue;
    }
    const Step& step = plans[i].steps().front();
    if (Decision* const place = done[i].place(); place != nullptr) {
      done[i].placed(error_of(decide_at(step, marks[i], reading, *place)));
      continue;
    }
    Outcome outcome{no_error_, {}, {}};
    outcome.error = error_of(decide_at(step, marks[i], reading, outcome.decision));
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

Counters& Engine::counters() const noexcept {
  static thread_local char mark;
  return counters_[reinterpret_cast<std::uintptr_t>(&mark) / 4096 % counters_.size()];
}

MemoryStats Engine::stats() const noexcept {
  MemoryStats stats;
  stats.keys = table_.used();
  stats.bytes = table_.bytes() + overflow_.bytes() + sizeof(Engine);
  for (const Counters& some : counters_) {
    stats.evicted_idle += some.evicted_idle.load(std::memory_order_relaxed);  // a figure
    stats.overflowed += some.overflowed.load(std::memory_order_relaxed);      // a figure
    stats.rejected += some.rejected.load(std::memory_order_relaxed);          // a figure
    stats.conflicts += some.conflicts.load(std::memory_order_relaxed);        // a figure
  }
  return stats;
}

}  // namespace sluice::memory

namespace sluice {

std::unique_ptr<MemoryStore> make_memory_store(const MemoryOptions& options) {
  return std::make_unique<memory::Engine>(options);
}

}  // namespace sluice
