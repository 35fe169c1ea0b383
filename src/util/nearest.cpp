// The distance of two texts.
#include "src/util/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace sluice::detail {

std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates,
                         std::size_t most) {
  std::string_view best;
  std::size_t fewest = most + 1;
  std::vector<std::size_t> before;  // the row above `above`
  std::vector<std::size_t> above;
  std::vector<std::size_t> row;
  for (const std::string_view candidate : candidates) {
    // The Levenshtein distance, by Wagner and Fischer's table, one row at a time; letters that
    // stand the wrong way round are one change.
    row.resize(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= text.size(); ++i) {
      std::swap(before, above);
      above = row;
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t changed = above[j - 1] + (text[i - 1] == candidate[j - 1] ? 0 : 1);
        row[j] = std::min({changed, above[j] + 1, row[j - 1] + 1});
        if (i > 1 && j > 1 && text[i - 1] == candidate[j - 2] && text[i - 2] == candidate[j - 1]) {
          row[j] = std::min(row[j], before[j - 2] + 1);
        }
      }
    }
    if (row.back() >= fewest) continue;
    fewest = row.back();
    best = candidate;
  }
  return best;
}

std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates) {
  return nearest(text, candidates, text.size() / 2);
}

}  // namespace sluice::detail
