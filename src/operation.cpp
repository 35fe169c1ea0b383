// Running a row of the table of operations, and making what it leaves.
#include "sluice/operation.hpp"

#include <algorithm>

namespace sluice {

std::size_t Effects::extent() const noexcept {
  std::size_t end = rotation_.last;
  for (const Fill& fill : fills()) end = std::max<std::size_t>(end, fill.index + fill.count);
  return end;
}

void Effects::make(std::span<Word> words) const noexcept {
  const auto at = [&](std::size_t i) { return words.begin() + static_cast<std::ptrdiff_t>(i); };
  if (rotation_.last != 0)
    std::rotate(at(rotation_.first), at(rotation_.middle), at(rotation_.last));
  for (const Fill& fill : fills()) std::fill_n(at(fill.index), fill.count, fill.value);
}

Verdict run(const Operation& row, std::span<const Word> words, const RuleRequest& request, Word now,
            Effects& effects) noexcept {
  if (row.apply != nullptr) {
    StateWords cell{words[0], words[1]};
    const Verdict verdict = row.apply(cell, request.args, now);
    if (cell[0] != words[0] || cell[1] != words[1]) {
      effects.put(0, cell[0]);
      effects.put(1, cell[1]);
    }
    return verdict;
  }
  const StateView state(words);
  const Verdict verdict = row.decide(state, request, now, effects);
  if (verdict.status >= 0 && !state.is_corrupt()) return verdict;
  effects.clear();
  for (std::size_t i = detail_count(row, request.table.size()); i > 0; --i) effects.tell(0);
  return state.is_corrupt() ? Verdict::failed(Errc::corrupt_state) : verdict;
}

}  // namespace sluice
