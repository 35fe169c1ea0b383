// What a store remembers of a plan that carries an id: the answer. For those who write stores.
// Threading: plain values.
#pragma once

#include <array>
#include <span>

#include "sluice/plan.hpp"

namespace sluice {

/// Which plan an id was first used for: a hash (SipHash-2-4, 52 bits) of its operations, keys and
/// counts of output words, in their order. Arguments do not count: what is asked again may have
/// less time to wait. The same in every process. O(bytes of the keys), no allocation.
[[nodiscard]] Word fingerprint(std::span<const Step> steps) noexcept;

/// The answer to a whole plan in words: the instant, the plan's fingerprint, four words of verdict
/// a step, then the output words of all steps.
class IdempotencyRecord {
 public:
  static constexpr std::size_t max_words = 2 + Plan::max_steps * 4 + Plan::max_steps * max_output;

  /// The words of an answer to so many steps that tell so many output words.
  [[nodiscard]] static constexpr std::size_t words_for(std::size_t steps,
                                                       std::size_t output) noexcept {
    return 2 + 4 * steps + output;
  }

  IdempotencyRecord() = default;
  /// Notes an answer to these steps. REQUIRES: a verdict for each.
  IdempotencyRecord(Word at, std::span<const Step> steps, std::span<const Verdict> verdicts,
                    std::span<const Word> output) noexcept;
  /// Reads one back. Empty if the words are no answer to a plan of these steps: the id was used for
  /// another (Errc::id_reused).
  IdempotencyRecord(std::span<const Word> words, std::span<const Step> steps) noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return size_ != 0; }
  [[nodiscard]] std::span<const Word> words() const noexcept { return {words_.data(), size_}; }

  [[nodiscard]] Word at() const noexcept { return words_[0]; }
  [[nodiscard]] Verdict verdict(std::size_t step) const noexcept {
    const Word* const first = &words_[2 + 4 * step];
    return {first[0], first[1], first[2], first[3]};
  }
  /// Empty if it is.
  [[nodiscard]] std::span<const Word> output() const noexcept {
    return size_ == 0 ? words() : words().subspan(2 + 4 * steps_);
  }

 private:
  std::array<Word, max_words> words_;
  std::size_t size_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace sluice
