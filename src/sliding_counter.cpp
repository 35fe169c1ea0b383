// Construction of the sliding window counter.
#include "sluice/sliding_counter.hpp"

#include <stdexcept>

namespace sluice {

SlidingCounter::SlidingCounter(Store& store, std::string name, WindowLimit window)
    : KeyedLimiter(store, std::move(name)), window_(window) {
  using Rule = SlidingCounterRule;
  if (window.limit < 1 || window.limit > Rule::max_limit) {
    throw std::invalid_argument("sliding counter: the limit must be 1 to " +
                                std::to_string(Rule::max_limit) + ", got " +
                                std::to_string(window.limit));
  }
  if (window.span.count() < 1 || window.span.count() > Rule::max_span) {
    throw std::invalid_argument("sliding counter: the span must be 1 us to " +
                                std::to_string(Rule::max_span) + " us, got " +
                                std::to_string(window.span.count()) + " us");
  }
}

}  // namespace sluice
