// Plans of several steps, or with an id: deciding them once their slots are held.
#include "backends/memory/plan_run.hpp"

#include <algorithm>

namespace sluice::memory {

/// Decides every step, writes if all are allowed, and lets all slots go. False if a state has no
/// room: nothing was changed. REQUIRES: all slots are held.
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
  Held& mine = held(step);
  if (mine.kind != asked.operation->kind) return fail(step, Errc::wrong_kind);
  if (asked.operation->apply == nullptr) return decide_by_rule(step);
  if (!is_cell(mine.kind)) return fail(step, Errc::unsupported_operation);
  verdicts_.make(step, [&] { return asked.operation->apply(mine.words, asked.args, at_); });
  mine.until = std::max(mine.until, engine_.quarter_after(at_ + verdicts_[step].reset_after));
}

/// A cell is changed in the copy that is held; what a block is to become stays in the effects.
void PlanRun::decide_by_rule(std::size_t step) noexcept {
  static constexpr StateWords absent{};
  const Step& asked = steps_[step];
  Held* const mine = has_slot(step) ? &held(step) : nullptr;
  const bool cell = is_cell(asked.operation->kind);
  std::span<const Word> words = absent;
  if (mine != nullptr && cell) words = mine->words;
  if (mine != nullptr && !cell) words = mine->state(engine_.blocks_);
  Effects& left = effects_.make(step);
  verdicts_.make(step, [&] {
    return sluice::run(*asked.operation, words, {asked.args, asked.table}, at_, left);
  });
  tell(left.details());
  if (verdicts_[step].status != Verdict::allowed || !left.changes()) return;
  if (mine != nullptr) {
    mine->until =
        std::max(mine->until, engine_.quarter_after(at_ + asked.operation->keep(asked.args)));
  }
  if (mine != nullptr && cell) {
    left.make(mine->words);
  } else {
    grows_[step] = left.extent();
  }
}

void PlanRun::tell(std::span<const Word> details) noexcept {
  std::copy(details.begin(), details.end(), details_.begin() + static_cast<std::ptrdiff_t>(told_));
  told_ += details.size();
}

void PlanRun::fail(std::size_t step, Errc code) noexcept {
  static constexpr std::array<Word, max_details> none{};
  verdicts_.make(step, [&] { return Verdict::failed(code); });
  const Step& asked = steps_[step];
  tell(std::span(none).first(detail_count(*asked.operation, asked.table.size())));
}

void PlanRun::fail_all(Errc code) noexcept {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    verdicts_.make(i, [&] { return Verdict::failed(code); });
  }
}

bool PlanRun::all_allowed() const noexcept {
  return std::ranges::all_of(verdicts(),
                             [](const Verdict& v) { return v.status == Verdict::allowed; });
}

/// Room for everything that will be written. False, with `fault_`, if there is none.
bool PlanRun::secure() noexcept {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (grows_[i] != 0 && !secure(i, grows_[i])) return false;
  }
  return !once_ || secure(steps_.size(), receipt_words());
}

bool PlanRun::secure(std::size_t key, std::size_t words) noexcept {
  if (has_slot(key) && engine_.secure(held(key), words, at_)) return true;
  fault_ = key % steps_.size();
  return false;
}

/// REQUIRES: secure().
void PlanRun::write() noexcept {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (grows_[i] != 0) effects_[i].make(held(i).grow(engine_.blocks_, grows_[i]));
  }
  if (once_) note();
}

/// True if the plan was answered before: the answer is the same again.
bool PlanRun::recall() noexcept {
  const Held& mine = held(steps_.size());
  if (mine.kind != StateKind::receipt) {
    fail_all(Errc::wrong_kind);
    return true;
  }
  const std::span<const Word> words = mine.state(engine_.blocks_);
  if (words.empty() || words[0] + id_kept_for.count() <= at_) return false;
  const Receipt receipt(words, steps_);
  if (!receipt) {
    fail_all(Errc::id_reused);
    return true;
  }
  at_ = receipt.at();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    verdicts_.make(i, [&] { return receipt.verdict(i); });
  }
  tell(receipt.details());
  return true;
}

/// Remembers the answer under the plan's id.
void PlanRun::note() noexcept {
  const Receipt receipt(at_, steps_, verdicts(), details());
  Held& mine = held(steps_.size());
  const std::span<Word> words = mine.grow(engine_.blocks_, receipt.words().size());
  std::ranges::copy(receipt.words(), words.begin());
  mine.cut(receipt.words().size());  // an older answer may have been longer
  mine.until = std::max(mine.until, engine_.quarter_after(at_ + id_kept_for.count()));
}

}  // namespace sluice::memory
