// How one waits for a learned rate. Apart from its other calls: who never waits links no waiting.
#include "sluice/limiters/learned_rate.hpp"

#include "src/waiting/claim_of.hpp"

namespace sluice {

struct LearnedRate::Verbs::Claimed final : detail::ClaimOf<LearnedRate, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key(), cost()); }
};

std::unique_ptr<detail::ClaimedLimit> LearnedRate::Verbs::claim(const LearnedRate& limiter,
                                                                const Key& key, Cost cost) {
  return std::make_unique<Claimed>(limiter, key, cost);
}

template Reservation KeyedLimiter<LearnedRate>::acquire(const KeyArg&, Cost, const Deadline&,
                                                        const WaitOptions&) const;
template Reservation KeyedLimiter<LearnedRate>::acquire(const KeyArg&, Cost, const Deadline&,
                                                        const WaitOptions&,
                                                        std::error_code&) const noexcept;
template std::size_t KeyedLimiter<LearnedRate>::waiting(const KeyArg&) const;

}  // namespace sluice
