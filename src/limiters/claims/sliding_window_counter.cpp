// How one waits for a sliding window counter. Apart from its other calls: who never waits links no
// waiting.
#include "sluice/limiters/sliding_window_counter.hpp"

#include "src/waiting/claim_of.hpp"

namespace sluice {

struct SlidingWindowCounter::Verbs::Claimed final : detail::ClaimOf<SlidingWindowCounter, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key(), cost()); }
};

std::unique_ptr<detail::ClaimedLimit> SlidingWindowCounter::Verbs::claim(
    const SlidingWindowCounter& counter, const Key& key, Cost cost) {
  return std::make_unique<Claimed>(counter, key, cost);
}

template Reservation KeyedLimiter<SlidingWindowCounter>::acquire(const KeyArg&, Cost,
                                                                 const Deadline&,
                                                                 const WaitOptions&) const;
template Reservation KeyedLimiter<SlidingWindowCounter>::acquire(const KeyArg&, Cost,
                                                                 const Deadline&,
                                                                 const WaitOptions&,
                                                                 std::error_code&) const noexcept;
template std::size_t KeyedLimiter<SlidingWindowCounter>::waiting(const KeyArg&) const;

}  // namespace sluice
