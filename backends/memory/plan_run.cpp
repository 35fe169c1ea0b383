// Plans of several steps, or with an id: deciding them once their slots are locked.
#include "backends/memory/plan_run.hpp"

#include <algorithm>

namespace sluice::memory {

/// Decides every step, writes if all are allowed, and unlocks all slots. False if there is no
/// memory for a state: nothing was changed. REQUIRES: all slots are locked.
bool PlanRun::decide() noexcept {
  at_ = to_word(engine_.clock_->now());
  if (once_ && recall()) {
    let_go(slots_, false);
    return true;
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) decide_step(i);
  const bool changed = all_allowed();
  const bool room = !changed || secure();
  if (changed && room) write();
  let_go(slots_, changed && room);
  if (shared_ != 0) engine_.count(&Counters::overflowed, shared_);
  return room;
}

void PlanRun::decide_step(std::size_t step) noexcept {
  const Step& asked = steps_[step];
  grows_[step] = 0;
  if (!has_slot(step)) return decide_by_rule(step);
  LockedSlot& mine = locked_slot(step);
  if (mine.kind != asked.operation->kind) return fail(step, Verdict::wrong_kind(mine.kind));
  if (asked.operation->apply == nullptr) return decide_by_rule(step);
  if (!is_cell(mine.kind)) {
    return fail(step, Verdict::failed(Errc::unsupported_operation));
  }
  verdicts_.make(step, [&] { return asked.operation->apply(mine.words, asked.args, at_); });
  mine.until = std::max(mine.until, engine_.tick_after(at_ + verdicts_[step].reset_after));
}

/// A cell is changed in its locked copy; changes of a block stay in the effects until they are
/// written.
void PlanRun::decide_by_rule(std::size_t step) noexcept {
  static constexpr StateWords absent{};
  const Step& asked = steps_[step];
  LockedSlot* const mine = has_slot(step) ? &locked_slot(step) : nullptr;
  const bool cell = is_cell(asked.operation->kind);
  std::span<const Word> words = absent;
  if (mine != nullptr && cell) words = mine->words;
  if (mine != nullptr && !cell) words = mine->state(engine_.blocks_);
  Effects& left = effects_.make(step);
  verdicts_.make(step, [&] {
    return sluice::run(*asked.operation, words, {asked.args, asked.table}, at_, left);
  });
  tell(left.output());
  if (verdicts_[step].status != Verdict::allowed || !left.changes()) return;
  if (mine != nullptr) {
    mine->until = std::max(mine->until, engine_.tick_after(at_ + asked.operation->ttl(asked.args)));
  }
  if (mine != nullptr && cell) {
    left.make(mine->words);
  } else {
    grows_[step] = left.extent();
  }
}

void PlanRun::tell(std::span<const Word> output) noexcept {
  std::copy(output.begin(), output.end(), output_.begin() + static_cast<std::ptrdiff_t>(told_));
  told_ += output.size();
}

void PlanRun::fail(std::size_t step, const Verdict& verdict) noexcept {
  static constexpr std::array<Word, max_output> none{};
  verdicts_.make(step, [&] { return verdict; });
  const Step& asked = steps_[step];
  tell(std::span(none).first(output_count(*asked.operation, asked.table.size())));
}

void PlanRun::fail_all(Errc code) noexcept {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    verdicts_.make(i, [&] { return Verdict::failed(code); });
  }
}

bool PlanRun::all_allowed() const noexcept {
  return std::all_of(verdicts().begin(), verdicts().end(),
                     [](const Verdict& v) { return v.status == Verdict::allowed; });
}

/// Allocates the memory of all writes. False, with `fault_`, if there is none.
bool PlanRun::secure() noexcept {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (grows_[i] != 0 && !secure(i, grows_[i])) return false;
  }
  return !once_ || secure(steps_.size(), record_words());
}

bool PlanRun::secure(std::size_t key, std::size_t words) noexcept {
  if (has_slot(key) && engine_.secure(locked_slot(key), words, at_)) return true;
  fault_ = key % steps_.size();
  return false;
}

/// REQUIRES: secure().
void PlanRun::write() noexcept {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (grows_[i] != 0) effects_[i].make(locked_slot(i).grow(engine_.blocks_, grows_[i]));
  }
  if (once_) note();
}

/// True if the plan has a recorded answer, which is the answer again.
bool PlanRun::recall() noexcept {
  const LockedSlot& mine = locked_slot(steps_.size());
  if (mine.kind != StateKind::idempotency_record) {
    fail_all(Errc::wrong_kind);
    return true;
  }
  const std::span<const Word> words = mine.state(engine_.blocks_);
  if (words.empty() || words[0] + id_kept_for.count() <= at_) return false;
  const IdempotencyRecord record(words, steps_);
  if (!record) {
    fail_all(Errc::id_reused);
    return true;
  }
  at_ = record.at();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    verdicts_.make(i, [&] { return record.verdict(i); });
  }
  tell(record.output());
  return true;
}

/// Records the answer under the plan's id.
void PlanRun::note() noexcept {
  const IdempotencyRecord record(at_, steps_, verdicts(), output());
  LockedSlot& mine = locked_slot(steps_.size());
  const std::span<Word> words = mine.grow(engine_.blocks_, record.words().size());
  std::copy(record.words().begin(), record.words().end(), words.begin());
  mine.cut(record.words().size());  // an older record may have been longer
  mine.until =
      std::max(mine.until, engine_.tick_after(at_ + id_kept_for.count() + Operation::clock_slack));
}

}  // namespace sluice::memory
