// IdempotencyRecord: the recorded answer to a plan with an id. For implementations of stores.
// Threading: plain values.
#pragma once

#include <array>
#include <span>

#include "sluice/plan.hpp"

namespace sluice {

/// Identifies the plan for which an id was first used: a hash (SipHash-2-4, 52 bits) of its
/// operations, keys and numbers of output words, in their order. Arguments are excluded, because a
/// retry may have less time to wait. The same in every process. O(bytes of the keys), no
/// allocation.
[[nodiscard]] Word fingerprint(std::span<const Step> steps) noexcept;

/// The answer to a whole plan in words: the time, the plan's fingerprint, four words of verdict a
/// step, then the output words of all steps.
class IdempotencyRecord {
 public:
  static constexpr std::size_t max_words = 2 + Plan::max_steps * 4 + Plan::max_steps * max_output;

  /// The number of words of an answer to `steps` steps with `output` output words.
  [[nodiscard]] static constexpr std::size_t words_for(std::size_t steps,
                                                       std::size_t output) noexcept {
    return 2 + 4 * steps + output;
  }

  IdempotencyRecord() = default;
  /// Makes the record of an answer to these steps. REQUIRES: one verdict for each step.
  IdempotencyRecord(Word at, std::span<const Step> steps, std::span<const Verdict> verdicts,
                    std::span<const Word> output) noexcept;
  /// Reads a record. Empty if the words are not an answer to a plan of these steps: the id was used
  /// for another plan (Errc::id_reused).
  IdempotencyRecord(std::span<const Word> words, std::span<const Step> steps) noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return size_ != 0; }
  [[nodiscard]] std::span<const Word> words() const noexcept { return {words_.data(), size_}; }

  [[nodiscard]] Word at() const noexcept { return words_[0]; }
  [[nodiscard]] Verdict verdict(std::size_t step) const noexcept {
    const Word* const first = &words_[2 + 4 * step];
    return {first[0], first[1], first[2], first[3]};
  }
  /// Empty if the record is.
  [[nodiscard]] std::span<const Word> output() const noexcept {
    return size_ == 0 ? words() : words().subspan(2 + 4 * steps_);
  }

 private:
  std::array<Word, max_words> words_;
  std::size_t size_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace sluice
