// WindowLimit: the limit of the limiters over windows. A plain value.
#pragma once

#include "sluice/time.hpp"

namespace sluice {

/// At most `limit` units in any window of `span`. `WindowLimit{300, 60s}`. 0: never, `unlimited`:
/// always.
struct WindowLimit {
  Word limit;
  Span span;

  friend bool operator==(const WindowLimit&, const WindowLimit&) = default;
};

}  // namespace sluice
