#include <algorithm>

#include "sluice/wait_options.hpp"

namespace sluice {

Time Deadline::on(const Clock& clock) const noexcept {
  if (!counts_) return at_;
  const Time now = clock.now();
  return in_ > Time::max() - now ? Time::max() : now + std::max(in_, -now.time_since_epoch());
}

}  // namespace sluice
