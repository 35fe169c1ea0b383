// A small store of our own, faithful unless told to break one promise: the suite must accept the
// faithful one and reject each broken one by name, or it checks nothing.
// Threading: as a Store, except that some defects exist only because of it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/extend/effects.hpp"
#include "sluice/rng.hpp"
#include "sluice/store.hpp"
#include "sluice/virtual_clock.hpp"

namespace sluice::test {

enum class Defect {
  none,
  charges_on_refusal,
  question_charges,
  remaining_off_by_one,
  hint_one_tick_short,
  hint_one_tick_long,
  reset_in_milliseconds,
  wrong_limit,
  writes_before_refusal,
  ignores_second_step,
  names_last_step,
  accepts_duplicates,
  hint_for_the_impossible,
  accepts_negative_cost,
  accepts_empty_keys,
  accepts_long_plans,
  joins_keys_with_colon,
  ignores_units,
  cuts_keys_at_zero,
  cuts_long_keys,
  checks_and_writes_apart,
  locks_per_step,
  batch_reversed,
  admits_all_alternatives,
  skips_alternatives,
  binding_is_another_key,
  forgets_early,
  stamp_moves_back,
  locked_out_by_clock,
  own_clock,
  stuck_clock,
  shares_scratch,
  charges_again,
  charges_half_again,
  remembers_refusals,
  forgets_ids_early,
  keeps_ids_for_ever,
  ids_without_tags,
  replays_for_other_plans,
  takes_any_kind,
  refusal_claims_key,
  half_applies_mixed_plans,
  drops_output,
  drops_output_of_refusals,
  mixes_up_output,
  loses_wide_words,
  ignores_tables,
};

/// In which of its calls a store is broken: in all of them, or in half, drawn anew for each.
enum class Shows { always, half_the_time };

class BrokenStore final : public Store {
 public:
  BrokenStore(Defect defect, VirtualClock& clock, Shows shows = Shows::always,
              std::uint64_t seed = 1)
      : defect_(defect), shows_(shows), clock_(clock), draws_(seed) {}

  void execute(const Plan& plan, Completion done) noexcept override;
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override;
  void execute_first(std::span<const Plan> plans, std::span<Completion> done) noexcept override;
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

 private:
  struct Entry {
    StateKind kind{};  // none until something is written
    std::vector<Word> state = std::vector<Word>(cell_words);
    Word written = 0;
  };
  struct Answer {
    Word at = 0;
    std::vector<Verdict> verdicts;
    std::vector<Word> output;
    bool allowed = true;
    Word asked = 0;  // the plan's fingerprint, if it had an id
  };
  using Lock = std::unique_lock<std::mutex>;

  [[nodiscard]] bool is(Defect defect) const noexcept { return defect_ == defect && acts_; }
  [[nodiscard]] bool overlooks(std::error_code error) const noexcept;
  [[nodiscard]] Word read_clock() const noexcept;
  [[nodiscard]] std::string key_of(const Step& step) const;

  void draw_whether_it_shows() noexcept;
  /// Gives the lock up until another caller has had it, or none seems to come. One nap would not
  /// do: beside other load, a caller may make all of its calls before the next one runs. A caller
  /// that seems to be the only one keeps the lock.
  void let_another_in(Lock& lock);
  Answer decide_once(const Plan& plan, Word now, Lock& lock);
  Answer decide_steps(std::span<const Step> steps, Word now, Lock& lock);
  Verdict decide_one(const Step& step, Entry& entry, Answer& answer) const;
  void change(Entry& entry, const Step& step, const Effects& effects) const;
  [[nodiscard]] bool keeps_back(std::span<const Step> steps, std::size_t index) const noexcept;
  [[nodiscard]] Verdict spoil(Verdict v) const noexcept;
  void spoil_output(Answer& answer) const;
  void deliver(std::span<const Step> steps, const Answer& answer, Completion& done) const noexcept;

  /// Whether the defect shows in the call that this thread makes.
  static inline thread_local bool acts_ = true;

  const Defect defect_;
  const Shows shows_;
  VirtualClock& clock_;
  std::mutex mutex_;
  std::uint64_t calls_ = 0;  // that have had the lock
  std::thread::id caller_;   // the last of them
  int in_a_row_ = 0;         // calls of that thread, behind its first
  SeededRng draws_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Answer> ids_;
  Answer scratch_;
};

}  // namespace sluice::test
