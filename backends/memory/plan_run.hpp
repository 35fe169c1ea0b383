// PlanRun: one plan in the memory store, all or nothing. The slots are locked in the order of their
// addresses, so that plans cannot deadlock; then every step is decided at one instant; then the
// blocks of growing states are allocated; then all states are written, or all restored. The record
// of a plan with an id is one more slot. Threading: lives on the stack of one call.
#pragma once

#include "backends/memory/engine.hpp"
#include "sluice/extend/idempotency_record.hpp"
#include "src/util/uninitialized_array.hpp"

namespace sluice::memory {

class PlanRun {
 public:
  PlanRun(Engine& engine, const Plan& plan) noexcept;

  /// Decides the plan. False if there is no memory for the step `fault()`: nothing was changed.
  bool run() noexcept;

  [[nodiscard]] std::span<const Verdict> verdicts() const noexcept {
    return {verdicts_.data(), steps_.size()};
  }
  /// The output words of all steps, one after the other.
  [[nodiscard]] std::span<const Word> output() const noexcept { return {output_.data(), told_}; }
  [[nodiscard]] Word at() const noexcept { return at_; }
  [[nodiscard]] std::size_t fault() const noexcept { return fault_; }

 private:
  static constexpr std::size_t most_slots = Plan::max_steps + 1;
  using Place = std::uint8_t;
  static constexpr Place nowhere = 0xff;

  // Finding and locking.
  bool find_slots() noexcept;
  [[nodiscard]] Slot* find(std::size_t key) noexcept;
  template <class Use>
  void with_key(std::size_t key, const Use& use) const noexcept;
  void name(const Slot& slot, const SlotId& id, std::size_t key) const noexcept;
  void fit(Slot& slot, const SlotId& id, Word now) noexcept;
  bool run_overflow() noexcept;
  bool find_overflow_slots() noexcept;
  [[nodiscard]] Slot* find_overflow_slot(std::size_t key, SlotId& id, Word now) noexcept;
  void use(std::size_t key, Slot* slot, const SlotId& id) noexcept;
  bool hold() noexcept;
  [[nodiscard]] bool has_slot(std::size_t key) const noexcept { return place_[key] != nowhere; }
  [[nodiscard]] LockedSlot& locked_slot(std::size_t key) noexcept {
    return locked_slots_[place_[key]];
  }

  // Deciding and writing.
  bool decide() noexcept;
  void decide_step(std::size_t step) noexcept;
  void decide_by_rule(std::size_t step) noexcept;
  void tell(std::span<const Word> output) noexcept;
  void fail(std::size_t step, const Verdict& verdict) noexcept;
  void fail_all(Errc code) noexcept;
  [[nodiscard]] bool all_allowed() const noexcept;
  bool secure() noexcept;
  bool secure(std::size_t key, std::size_t words) noexcept;
  void write() noexcept;
  void let_go(std::size_t count, bool changed) noexcept;

  // The plan's id.
  [[nodiscard]] std::size_t keys() const noexcept { return steps_.size() + (once_ ? 1 : 0); }
  bool recall() noexcept;
  void note() noexcept;
  [[nodiscard]] std::size_t record_words() const noexcept {
    return IdempotencyRecord::words_for(steps_.size(), told_);
  }

  Engine& engine_;
  const Plan& plan_;
  std::span<const Step> steps_;
  bool once_;
  detail::UninitializedArray<SlotId, most_slots> ids_;  // of the steps and of the record
  detail::UninitializedArray<LockedSlot, most_slots> locked_slots_;
  std::array<Place, most_slots> order_;  // of locked_slots_, by the addresses of their slots
  std::size_t slots_ = 0;
  bool stale_ = false;  // a key was found in a slot that has another owner now; see use()
  std::array<Place, most_slots>
      place_;               // index in locked_slots_; nowhere: no slot, and the state is absent
  std::size_t shared_ = 0;  // steps that are decided in a shared bucket
  detail::UninitializedArray<Verdict, Plan::max_steps> verdicts_;
  std::array<std::size_t, Plan::max_steps>
      grows_;  // the new size of the block in words; 0: no block is changed
  std::array<Word, Plan::max_steps * max_output> output_;
  std::size_t told_ = 0;
  Word at_ = 0;
  std::size_t fault_ = 0;
  detail::UninitializedArray<Effects, Plan::max_steps> effects_;  // of steps by rules with effects
};

}  // namespace sluice::memory
