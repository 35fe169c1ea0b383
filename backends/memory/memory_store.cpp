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

/// Decides in a slot that was the key's a moment ago. False if it is no more: nothing was decided.
bool Engine::decide_in(Slot& slot, const Step& step, const Mark& mark, Reading& reading,
                       Answer& answer) noexcept {
  const Operation& operation = *step.operation;
  auto [identity, seen] = slot.snapshot();
  if (!mark.owns(identity)) [[unlikely]] {
    return decide_strange(identity, step, mark, answer);
  }
  for (std::uint64_t conflicts = 0;;) {
    if (state::is_special(seen)) [[unlikely]] {
      seen = await(slot, seen);
      if (state::is_special(seen)) return false;
    }
    StateWords words = state::words(seen);
    const Word now = reading.at(operation, words, step.args);
    const Verdict verdict = operation.apply(words, step.args, now);
    const Pair next = state::next(words, seen);
    if (next != seen) {
      const Word until = now + verdict.reset_after;
      if (until > instant(Slot::idle_at(identity.high))) {
        slot.keep_until(mark, quarter_after(until));
      }
      const Pair before = seen;
      if (!slot.state.exchange(seen, next)) {
        ++conflicts;
        if (!state::same_owner(seen, before)) return false;
        continue;
      }
    }
    answer.put(step, verdict, now);
    if (conflicts != 0) [[unlikely]] {
      count(&Counters::conflicts, conflicts);
    }
    if (is_bound(step)) remember(*step.binding, slot);
    return true;
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
  if (!is_one(plan)) return execute_plan(plan, done);
  Outcome outcome{no_error_, {}, {}};
  decide_now(plan, outcome.decision, outcome.error);
  if (!outcome.error) outcome.steps = {&outcome.decision, 1};
  done(outcome);
}

bool Engine::decide_now(const Plan& plan, Decision& decision, std::error_code& error) noexcept {
  if (!is_one(plan)) return false;
  const Step& step = plan.steps().front();
  Answer answer{decision};
  if (is_bound(step) && step.binding->slot.load(std::memory_order_relaxed) != nullptr) {  // a guess
    Reading reading(*clock_, *step.operation, coarse_);
    decide_bound(step, {step.binding->hash, step.operation->kind}, reading, answer);
  } else if (is_bound(step) || is_valid(step.key)) {
    const Mark mark = mark_of(step);
    table_.prefetch(mark.hash);
    // The fine clock costs nothing here: the slot, which is probably not in the cache, comes
    // meanwhile.
    Reading reading(*clock_);
    decide(step, mark, reading, answer);
  } else {
    answer.fail(Errc::invalid_key);
  }
  error = error_of(answer);
  return true;
}

void Engine::decide_bound(const Step& step, const Mark& mark, Reading& reading,
                          Answer& answer) noexcept {
  auto* const slot = static_cast<Slot*>(
      step.binding->slot.load(std::memory_order_relaxed));  // a guess: see bind()
  if (slot != nullptr && decide_in(*slot, step, mark, reading, answer)) return;
  decide(step, mark, reading, answer);
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
    if (decide_in(*slot, step, mark, reading, answer)) return;
  }
}

void Engine::decide_absent(const Step& step, const StateWords& state, Reading& reading,
                           Answer& answer) noexcept {
  StateWords words = state;
  const Word now = reading.at(*step.operation, words, step.args);
  answer.put(step, step.operation->apply(words, step.args, now), now);
}

/// Decides up to `ahead` plans: asks for the memory of all, reads the clock once, then decides.
/// `answer_of(i)` is where the i-th answer goes, `done(i, answer)` takes it, and `rest(i)` decides
/// a plan of several steps.
template <class AnswerOf, class Done, class Rest>
void Engine::decide_run(std::span<const Plan> plans, const AnswerOf& answer_of, const Done& done,
                        const Rest& rest) noexcept {
  std::array<Mark, ahead> marks;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!is_one(plans[i])) continue;
    const Step& step = plans[i].steps().front();
    marks[i] = mark_of(step);
    const void* const slot =
        is_bound(step) ? step.binding->slot.load(std::memory_order_relaxed)  // a guess: see bind()
                       : nullptr;
    if (slot != nullptr) {
      __builtin_prefetch(slot, 1);
    } else {
      table_.prefetch(marks[i].hash);
    }
  }
  Reading reading(*clock_);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!is_one(plans[i])) {
      rest(i);
      continue;
    }
    const Step& step = plans[i].steps().front();
    Answer answer = answer_of(i);
    if (is_bound(step)) {
      decide_bound(step, marks[i], reading, answer);
    } else if (is_valid(step.key)) {
      decide(step, marks[i], reading, answer);
    } else {
      answer.fail(Errc::invalid_key);
    }
    done(i, answer);
  }
}

void Engine::execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  while (!plans.empty()) {
    const std::size_t run = std::min(plans.size(), ahead);
    Outcome outcome{no_error_, {}, {}};
    decide_run(
        plans.first(run), [&](std::size_t) { return Answer{outcome.decision}; },
        [&](std::size_t i, const Answer& answer) {
          outcome.error = error_of(answer);
          outcome.steps = {&outcome.decision, outcome.error ? 0U : 1U};
          done[i](outcome);
        },
        [&](std::size_t i) { execute_plan(plans[i], done[i]); });
    plans = plans.subspan(run);
    done = done.subspan(run);
  }
}

bool Engine::decide_batch_now(std::span<const Plan> plans, std::span<Decision> decisions,
                              std::span<std::error_code> errors) noexcept {
  while (!plans.empty()) {
    const std::size_t run = std::min(plans.size(), ahead);
    decide_run(
        plans.first(run), [&](std::size_t i) { return Answer{decisions[i]}; },
        [&](std::size_t i, const Answer& answer) { errors[i] = error_of(answer); },
        [&](std::size_t i) {
          struct Place {
            Decision& decision;
            std::error_code& error;
          } place{decisions[i], errors[i]};
          Completion done(
              [](void* context, const Outcome& outcome) noexcept {
                auto& to = *static_cast<Place*>(context);
                to.decision = outcome.decision;
                to.error = outcome.error;
              },
              &place);
          execute_plan(plans[i], done);
        });
    plans = plans.subspan(run);
    decisions = decisions.subspan(run);
    errors = errors.subspan(run);
  }
  return true;
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
