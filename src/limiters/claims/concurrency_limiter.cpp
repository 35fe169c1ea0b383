// How one waits for a concurrency limiter. Apart from its other calls: who never waits links no
// waiting.
#include "sluice/limiters/concurrency_limiter.hpp"

#include <array>

#include "src/waiting/claim_of.hpp"

namespace sluice {

struct ConcurrencyLimiter::Verbs::Claimed final : detail::ClaimOf<ConcurrencyLimiter, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().leases_.named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  bool freed_early() const noexcept override { return !is_constant(); }
  Step step() const noexcept override {
    return limiter().leases_.acquire_new_step(own_key(), {limiter().limit_.of(own_key()), 0},
                                              cost(), id_);
  }
  Grant grant_of(const Outcome& outcome, Time asked) const {
    static constexpr std::array<Word, output> none{};
    return limiter().adopt(own_key(), id_, cost(), outcome.decision,
                           outcome.output.empty() ? none : outcome.output, asked);
  }
  static void refund_grant(Grant& grant, Completion done) noexcept {
    grant.release_later();
    done(Outcome{});
  }

 private:
  LeaseId id_ = limiter().leases_.draw_id();
};

std::unique_ptr<detail::ClaimedLimit> ConcurrencyLimiter::Verbs::claim(
    const ConcurrencyLimiter& jobs, const Key& key, Cost weight) {
  return std::make_unique<Claimed>(jobs, key, weight);
}

Lease ConcurrencyLimiter::acquire(const KeyArg& key, Cost weight, const Deadline& deadline,
                                  const WaitOptions& options) const {
  return detail::acquire_one(*this, key, weight, deadline, options);
}
Lease ConcurrencyLimiter::acquire(const KeyArg& key, Cost weight, const Deadline& deadline,
                                  const WaitOptions& options, std::error_code& error) const {
  return detail::acquire_one(*this, key, weight, deadline, options, error);
}

}  // namespace sluice
