// How one waits for a sliding window. Apart from its other calls: who never waits links no waiting.
#include "sluice/limiters/sliding_window.hpp"

#include <algorithm>

#include "src/waiting/claim_of.hpp"

namespace sluice {

struct SlidingWindow::Verbs::Claimed final : detail::ClaimOf<SlidingWindow, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key(), cost()); }
  /// In any `span` from the first grant on there are at most `limit` units.
  Span time_for(Word first, Word further) const noexcept override {
    Span longest{0};
    for (const auto& [limit, span] : limiter().limit_.of(own_key())->windows) {
      if (cost().value() > limit || limit == 0) return Span{0};
      const Word whole = (first + further - 1) / limit;
      longest = std::max(longest, span * std::min(whole, word_limit / span.count()));
    }
    return longest;
  }
};

std::unique_ptr<detail::ClaimedLimit> SlidingWindow::Verbs::claim(const SlidingWindow& windows,
                                                                  const Key& key, Cost cost) {
  return std::make_unique<Claimed>(windows, key, cost);
}

template Reservation KeyedLimiter<SlidingWindow>::acquire(const KeyArg&, Cost, const Deadline&,
                                                          const WaitOptions&) const;
template Reservation KeyedLimiter<SlidingWindow>::acquire(const KeyArg&, Cost, const Deadline&,
                                                          const WaitOptions&,
                                                          std::error_code&) const noexcept;
template std::size_t KeyedLimiter<SlidingWindow>::waiting(const KeyArg&) const;

}  // namespace sluice
