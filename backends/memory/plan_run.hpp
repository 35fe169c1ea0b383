// One plan's way through the memory store: all or nothing. The slots are held, in the order of
// their addresses so that two plans never wait for each other in a circle; then every step is
// decided at one instant; then the blocks of states that grow are secured; then all states are
// written, or all put back as they were. The receipt of a plan with an id is one slot more.
// Threading: lives on the stack of one call.
#pragma once

#include "backends/memory/engine.hpp"
#include "sluice/receipt.hpp"
#include "src/room.hpp"

namespace sluice::memory {

class PlanRun {
 public:
  PlanRun(Engine& engine, const Plan& plan) noexcept;

  /// Decides the plan. False if no room could be found for the step `fault()`: nothing was changed.
  bool run() noexcept;

  [[nodiscard]] std::span<const Verdict> verdicts() const noexcept {
    return {verdicts_.data(), steps_.size()};
  }
  /// Of all steps, one after the other.
  [[nodiscard]] std::span<const Word> details() const noexcept { return {details_.data(), told_}; }
  [[nodiscard]] Word at() const noexcept { return at_; }
  [[nodiscard]] std::size_t fault() const noexcept { return fault_; }

 private:
  static constexpr std::size_t most_slots = Plan::max_steps + 1;
  using Place = std::uint8_t;
  static constexpr Place nowhere = 0xff;

  // Finding and holding.
  bool find_slots() noexcept;
  [[nodiscard]] Slot* find(const Mark& mark) noexcept;
  void fit(Slot& slot, const Mark& mark, Word now) noexcept;
  bool run_crowded() noexcept;
  bool find_slots_crowded() noexcept;
  [[nodiscard]] Slot* find_crowded(std::size_t key, Mark& mark, Word now) noexcept;
  void use(std::size_t key, Slot* slot, const Mark& mark) noexcept;
  bool hold() noexcept;
  [[nodiscard]] bool has_slot(std::size_t key) const noexcept { return place_[key] != nowhere; }
  [[nodiscard]] Held& held(std::size_t key) noexcept { return held_[place_[key]]; }

  // Deciding and writing.
  bool decide() noexcept;
  void decide_step(std::size_t step) noexcept;
  void decide_by_rule(std::size_t step) noexcept;
  void tell(std::span<const Word> details) noexcept;
  void fail(std::size_t step, Errc code) noexcept;
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
  [[nodiscard]] std::size_t receipt_words() const noexcept {
    return Receipt::words_for(steps_.size(), told_);
  }

  Engine& engine_;
  std::span<const Step> steps_;
  bool once_;
  detail::Room<Mark, most_slots> marks_;  // of the steps, and of the receipt
  detail::Room<Held, most_slots> held_;
  std::array<Place, most_slots> order_;  // of held_, by the addresses of their slots
  std::size_t slots_ = 0;
  std::array<Place, most_slots> place_;  // in held_; nowhere: no slot, and the state is absent
  std::size_t shared_ = 0;               // steps that are decided in a bucket of several keys
  detail::Room<Verdict, Plan::max_steps> verdicts_;
  std::array<std::size_t, Plan::max_steps> grows_;  // to so many words; 0: no block is changed
  std::array<Word, Plan::max_steps * max_details> details_;
  std::size_t told_ = 0;
  Word at_ = 0;
  std::size_t fault_ = 0;
  detail::Room<Effects, Plan::max_steps> effects_;  // of steps by rules that leave effects
};

}  // namespace sluice::memory
