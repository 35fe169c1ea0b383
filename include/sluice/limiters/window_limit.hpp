// WindowLimit: the limit of the limiters over windows. A plain value.
#pragma once

#include <vector>

#include "sluice/decision.hpp"

namespace sluice {

/// At most `limit` units in any window of `span`. `WindowLimit{300, 60s}`. 0: never, `unlimited`:
/// always.
struct WindowLimit {
  Word limit;
  Span span;

  friend bool operator==(const WindowLimit&, const WindowLimit&) = default;
};

namespace detail {

/// The windows of a key, and their words for the rule.
struct CountedWindows {
  explicit CountedWindows(std::vector<WindowLimit> windows);

  std::vector<WindowLimit> windows;
  std::vector<Word> words;  ///< limit and span of each
  Word least = unlimited;   ///< the smallest limit
  Word longest = 0;         ///< span, in microseconds
};

}  // namespace detail

}  // namespace sluice
