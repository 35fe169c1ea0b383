// Asking one limiter as fast as possible, and judging what it admitted.
// Threading: each LoadCounts belongs to one thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/clock.hpp"
#include "sluice/limiters/token_bucket.hpp"

namespace sluice::tool {

inline constexpr Span load_length = std::chrono::seconds{1};

/// What one caller, or all of them, were answered.
struct LoadCounts {
  std::uint64_t admitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;
  Word first = word_limit;  ///< when the first decision was made, by the store's clock
  Word last = 0;

  void add(const Decision& decision) {
    ++(decision.allowed ? admitted : refused);
    first = std::min(first, to_word(decision.at));
    last = std::max(last, to_word(decision.at));
  }
  void add(const LoadCounts& other) {
    admitted += other.admitted;
    refused += other.refused;
    failed += other.failed;
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
  [[nodiscard]] std::uint64_t decisions() const { return admitted + refused; }
  [[nodiscard]] Span length() const { return Span{last > first ? last - first : 0}; }
};

/// Calls `ask(error)` until `clock` shows `end`.
template <class Ask>
LoadCounts run_load(const Clock& clock, Time end, Ask ask) {
  LoadCounts counts;
  for (unsigned round = 0; round % 16 != 0 || clock.now() < end; ++round) {
    std::error_code error;
    const Decision decision = ask(error);
    if (error) {
      ++counts.failed;
    } else {
      counts.add(decision);
    }
  }
  return counts;
}

/// The most that `quota` admits in a time of this length: capacity + length * rate.
[[nodiscard]] std::uint64_t most_admitted(const Quota& quota, Span length);

/// Prints the counts beside what the quota allows. 0 if all is as promised, else 1.
[[nodiscard]] int print_load(const LoadCounts& counts, const Quota& quota);

}  // namespace sluice::tool
