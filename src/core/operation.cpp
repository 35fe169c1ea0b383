// Running a row of the table of operations, and applying its effects.
#include "sluice/extend/operation.hpp"

#include <algorithm>

namespace sluice {

std::span<const Effects::Fill> Effects::fills() const noexcept {
  return {fills_.data(), fill_count_};
}

void Effects::make(std::span<Word> words) const noexcept {
  const auto at = [&](std::size_t i) { return words.begin() + static_cast<std::ptrdiff_t>(i); };
  for (const auto& [first, middle, last] : rotations())
    std::rotate(at(first), at(middle), at(last));
  for (const Fill& fill : fills()) {
    if (fill.count == 1) [[likely]] {
      words[fill.index] = fill.value;
    } else {
      std::fill_n(at(fill.index), fill.count, fill.value);
    }
  }
}

namespace {

Verdict apply(const Operation& row, std::span<const Word> words, const RuleRequest& request,
              Word now, Effects& effects) noexcept {
  StateWords cell{words[0], words[1]};
  Verdict verdict = row.apply(cell, request.args, now);
  if (cell[0] != words[0] || cell[1] != words[1]) {
    effects.put(0, cell[0]);
    effects.put(1, cell[1]);
  }
  return verdict;
}

/// The verdict is one object from the kernel to the caller. A copy would load pairs of words that
/// were just stored one by one, and stall until the stores have left the processor's store buffer.
Verdict decide(const Operation& row, std::span<const Word> words, const RuleRequest& request,
               Word now, Effects& effects) noexcept {
  const StateView state(words);
  Verdict verdict = row.decide(state, request, now, effects);
  if (verdict.status < 0 || state.is_corrupt()) [[unlikely]] {
    effects.clear();
    for (std::size_t i = output_count(row, request.table.size()); i > 0; --i) effects.add_output(0);
    if (state.is_corrupt()) verdict = Verdict::failed(Errc::corrupt_state);
  }
  return verdict;
}

}  // namespace

Verdict run(const Operation& row, std::span<const Word> words, const RuleRequest& request, Word now,
            Effects& effects) noexcept {
  if (row.apply != nullptr) return apply(row, words, request, now, effects);
  return decide(row, words, request, now, effects);
}

}  // namespace sluice
