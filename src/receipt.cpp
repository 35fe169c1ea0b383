// Noting an answer in words, and reading it back.
#include "sluice/receipt.hpp"

#include <algorithm>

namespace sluice {

Receipt::Receipt(Word at, std::span<const Verdict> verdicts,
                 std::span<const Word> details) noexcept {
  const auto add = [this](Word word) { words_[size_++] = word; };
  add(at);
  add(static_cast<Word>(verdicts.size()));
  for (const Verdict& v : verdicts) {
    add(v.status);
    add(v.remaining);
    add(v.retry_after);
    add(v.reset_after);
  }
  for (const Word detail : details) add(detail);
}

Receipt::Receipt(std::span<const Word> words, std::span<const Step> steps) noexcept {
  std::size_t expected = 2 + 4 * steps.size();
  for (const Step& step : steps) expected += detail_count(*step.operation, step.table.size());
  if (words.size() < expected || words[1] != static_cast<Word>(steps.size())) return;
  std::copy_n(words.begin(), expected, words_.begin());
  size_ = expected;
}

}  // namespace sluice
