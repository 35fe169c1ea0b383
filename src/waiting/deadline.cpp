#include <algorithm>

#include <string>

#include "sluice/wait_options.hpp"

namespace sluice {

Time Deadline::on(const Clock& clock) const noexcept {
  if (!counts_) return at_;
  const Time now = clock.now();
  return in_ > Time::max() - now ? Time::max() : now + std::max(in_, -now.time_since_epoch());
}

std::string WaitOptions::what_is_wrong() const {
  if (priority < lowest_priority || priority > highest_priority) {
    return "priority " + std::to_string(priority) + ", allowed " + std::to_string(lowest_priority) +
           " to " + std::to_string(highest_priority);
  }
  return "weight " + std::to_string(weight) + ", allowed 1 to " + std::to_string(largest_weight);
}

}  // namespace sluice
