// Plans of several steps: all or nothing. The cells are held, in the order of their addresses so
// that two plans never wait for each other in a circle; then every step is decided at one instant;
// then all states are written, or all put back as they were.
#include <algorithm>

#include "backends/memory/engine.hpp"

namespace sluice::memory {

/// One plan's way. Lives on the stack of the call.
class PlanRun {
 public:
  PlanRun(Engine& engine, std::span<const Step> steps) noexcept : engine_(engine), steps_(steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) marks_[i] = engine.mark_of(steps[i]);
  }

  /// Decides the plan. False if no room could be found for the step `fault()`.
  bool run() noexcept {
    if (find_cells() && hold()) {
      decide();
      return true;
    }
    return run_crowded();
  }

  [[nodiscard]] std::span<const Verdict> verdicts() const noexcept {
    return {verdicts_.data(), steps_.size()};
  }
  [[nodiscard]] Word at() const noexcept { return at_; }
  [[nodiscard]] std::size_t fault() const noexcept { return fault_; }

 private:
  /// A cell that some steps use. Two keys of a plan may share a bucket, and so a cell.
  struct Held {
    Slot* slot = nullptr;
    Mark mark;
    Pair before{};
    StateWords words{};
    StateKind kind{};
    Quarter until = 0;
  };

  bool find_cells() noexcept;
  bool run_crowded() noexcept;
  bool find_cells_crowded() noexcept;
  void use(std::size_t step, Slot* slot, const Mark& mark) noexcept;
  bool hold() noexcept;
  bool hold(Held& held) noexcept;
  void decide() noexcept;
  void apply(std::size_t step) noexcept;
  void let_go(std::size_t count, bool write) noexcept;

  Engine& engine_;
  std::span<const Step> steps_;
  std::array<Mark, Plan::max_steps> marks_;
  std::array<Held, Plan::max_steps> held_;
  std::size_t cells_ = 0;
  std::array<const Slot*, Plan::max_steps> slot_of_{};
  std::array<bool, Plan::max_steps> shared_{};
  std::array<Verdict, Plan::max_steps> verdicts_;
  Word at_ = 0;
  std::size_t fault_ = 0;
};

/// Finds or claims a slot for each step, without a lock. False if a key has none and cannot.
bool PlanRun::find_cells() noexcept {
  const Quarter soon = engine_.soon(to_word(engine_.clock_->now()));
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Slot* const slot = engine_.table_.find_or_claim(marks_[i], soon);
    if (slot == nullptr) return false;
    use(i, slot, marks_[i]);
  }
  return true;
}

/// The same under the stripes of all keys, taken in their order.
bool PlanRun::run_crowded() noexcept {
  std::array<bool, std::tuple_size_v<decltype(engine_.stripes_)>> wanted{};
  for (std::size_t i = 0; i < steps_.size(); ++i) wanted[engine_.stripe_of(marks_[i])] = true;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) engine_.stripes_[i].lock();
  }
  bool found = false;
  do {
    found = find_cells_crowded();
  } while (found && !hold());
  if (found) decide();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) engine_.stripes_[i].unlock();
  }
  return found;
}

bool PlanRun::find_cells_crowded() noexcept {
  cells_ = 0;
  const Word now = to_word(engine_.clock_->now());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Mark mark = marks_[i];
    const Mark shared = engine_.shared_mark(steps_[i], mark);
    Slot* slot = engine_.table_.find_or_claim(mark, engine_.soon(now));
    if (slot == nullptr) slot = engine_.take_over(mark, shared, now);
    shared_[i] = slot == nullptr;
    if (slot == nullptr) {
      mark = shared;
      slot = engine_.find_shared(shared, now);
    }
    if (slot == nullptr) {
      fault_ = i;
      return false;
    }
    // Kept for a moment, so that no other step or thread takes it before it is held.
    slot->keep_until(mark, engine_.soon(now));
    use(i, slot, mark);
  }
  return true;
}

void PlanRun::use(std::size_t step, Slot* slot, const Mark& mark) noexcept {
  slot_of_[step] = slot;
  for (std::size_t i = 0; i < cells_; ++i) {
    if (held_[i].slot == slot) return;
  }
  held_[cells_++] = Held{slot, mark, {}, {}, {}, 0};
}

/// Holds every cell. False, with none held, if one of them has lost its owner.
bool PlanRun::hold() noexcept {
  std::sort(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(cells_),
            [](const Held& a, const Held& b) { return std::less<>()(a.slot, b.slot); });
  for (std::size_t i = 0; i < cells_; ++i) {
    if (!hold(held_[i])) {
      let_go(i, false);
      return false;
    }
  }
  return true;
}

bool PlanRun::hold(Held& held) noexcept {
  Pause pause;
  for (;;) {
    auto [identity, seen] = held.slot->snapshot();
    if (!held.mark.matches(identity.low, identity.high)) return false;
    if (state::level(seen) == state::dead) return false;
    if (state::level(seen) == state::locked) {
      pause();
      continue;
    }
    held.before = seen;
    if (held.slot->state.exchange(seen, state::make(state::locked, 0, state::generation(seen)))) {
      held.words = state::words(held.before);
      held.kind = Slot::kind(identity.high);
      held.until = Slot::idle_at(identity.high);
      return true;
    }
    engine_.count(&Counters::conflicts);
  }
}

/// Decides every step and writes if all are allowed. REQUIRES: all cells are held.
void PlanRun::decide() noexcept {
  at_ = to_word(engine_.clock_->now());
  for (std::size_t i = 0; i < steps_.size(); ++i) apply(i);
  let_go(cells_, std::all_of(verdicts_.begin(),
                             verdicts_.begin() + static_cast<std::ptrdiff_t>(steps_.size()),
                             [](const Verdict& v) { return v.status == Verdict::allowed; }));
  const auto shared = std::count(shared_.begin(), shared_.end(), true);
  if (shared != 0) engine_.count(&Counters::overflowed, static_cast<std::uint64_t>(shared));
}

void PlanRun::apply(std::size_t step) noexcept {
  Held& held = *std::find_if(held_.begin(), held_.end(),
                             [&](const Held& h) { return h.slot == slot_of_[step]; });
  const Step& asked = steps_[step];
  if (held.kind != asked.operation->kind) {
    verdicts_[step] = Verdict::failed(Errc::wrong_kind);
    return;
  }
  verdicts_[step] = asked.operation->apply(held.words, asked.args, at_);
  held.until = std::max(held.until, engine_.quarter_after(at_ + verdicts_[step].reset_after));
}

/// Lets the first `count` cells go, with their new states or with those from before.
void PlanRun::let_go(std::size_t count, bool write) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    Held& held = held_[i];
    const std::uint64_t generation = state::generation(held.before);
    Pair locked = state::make(state::locked, 0, generation);
    if (write && held.words != state::words(held.before)) {
      held.slot->keep_until(held.mark, held.until);
      held.slot->state.exchange(locked, state::make(held.words, generation));
    } else {
      held.slot->state.exchange(locked, held.before);
    }
  }
}

void Engine::execute_plan(const Plan& plan, Completion& done) noexcept {
  if (const PlanFault fault = find_fault(plan); fault.error) {
    return done.fail(fault.error, fault.step);
  }
  PlanRun run(*this, plan.steps());
  if (!run.run()) {
    count(&Counters::rejected);
    return done.fail(Errc::store_full, static_cast<std::uint16_t>(run.fault()));
  }
  conclude(plan.steps(), run.verdicts(), to_time(run.at()), Source::memory, done);
}

}  // namespace sluice::memory
