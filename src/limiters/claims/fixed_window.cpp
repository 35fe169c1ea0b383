// How one waits for a fixed window. Apart from its other calls: who never waits links no waiting.
#include "sluice/limiters/fixed_window.hpp"

#include "src/waiting/claim_of.hpp"

namespace sluice {

struct FixedWindow::Verbs::Claimed final : detail::ClaimOf<FixedWindow, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key(), cost()); }
};

std::unique_ptr<detail::ClaimedLimit> FixedWindow::Verbs::claim(const FixedWindow& window,
                                                                const Key& key, Cost cost) {
  return std::make_unique<Claimed>(window, key, cost);
}

template Reservation KeyedLimiter<FixedWindow>::acquire(const KeyArg&, Cost, const Deadline&,
                                                        const WaitOptions&) const;
template Reservation KeyedLimiter<FixedWindow>::acquire(const KeyArg&, Cost, const Deadline&,
                                                        const WaitOptions&,
                                                        std::error_code&) const noexcept;
template std::size_t KeyedLimiter<FixedWindow>::waiting(const KeyArg&) const;

}  // namespace sluice
