// Writing an answer as words, and reading it.
#include "sluice/extend/idempotency_record.hpp"

#include <algorithm>

#include "sluice/extend/operation.hpp"
#include "sluice/store.hpp"
#include "src/util/siphash.hpp"

namespace sluice {

Word fingerprint(std::span<const Step> steps) noexcept {
  std::array<std::uint64_t, 2> chain{};
  for (const Step& step : steps) {
    chain[0] ^= step.operation->id;
    chain[1] ^= output_count(*step.operation, step.table.size());
    chain = detail::SipHash24(chain)(step.key.tag(), step.key.name(), step.key.unit());
  }
  return static_cast<Word>(chain[0] % static_cast<std::uint64_t>(word_limit));
}

IdempotencyRecord::IdempotencyRecord(Word at, std::span<const Step> steps,
                                     std::span<const Verdict> verdicts,
                                     std::span<const Word> output) noexcept
    : steps_(steps.size()) {
  const auto add = [this](Word word) { words_[size_++] = word; };
  add(at);
  add(fingerprint(steps));
  for (const Verdict& v : verdicts) {
    add(v.status);
    add(v.remaining);
    add(v.retry_after);
    add(v.reset_after);
  }
  for (const Word detail : output) add(detail);
}

IdempotencyRecord::IdempotencyRecord(std::span<const Word> words,
                                     std::span<const Step> steps) noexcept
    : steps_(steps.size()) {
  const std::size_t expected = words_for(steps.size(), output_count(steps));
  if (words.size() < expected || words[1] != fingerprint(steps)) return;
  std::copy_n(words.begin(), expected, words_.begin());
  size_ = expected;
}

}  // namespace sluice
