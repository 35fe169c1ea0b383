// The concurrency limiter: its calls, and how one waits for it.
#include "sluice/limiters/concurrency_limiter.hpp"

#include <array>
#include <stdexcept>

#include "src/limiters/or_throw.hpp"
#include "src/waiting/claim_of.hpp"

namespace sluice {
namespace {

Word valid(detail::Given limit) {
  if (limit.within(0, unlimited)) return limit.word();
  throw std::invalid_argument("ConcurrencyLimiter: limit must be 0 to 2^52, got " +
                              to_string(limit));
}

}  // namespace

ConcurrencyLimiter::ConcurrencyLimiter(const StoreHandle& store, detail::TextArg name,
                                       detail::Given limit, const LeaseOptions& options)
    : Waitable(store.address()), leases_(store, name, options, queues()), limit_(valid(limit)) {}

ConcurrencyLimiter::ConcurrencyLimiter(const StoreHandle& store, detail::TextArg name,
                                       std::shared_ptr<const LimitTable<Word>> limits,
                                       const LeaseOptions& options)
    : Waitable(store.address()),
      leases_(store, name, options, queues()),
      limit_(std::move(limits)) {}

Lease ConcurrencyLimiter::try_acquire(const KeyArg& key, Cost weight) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, LeaseId{}, weight); },
      [&](auto& error) { return try_acquire(key, weight, error); });
}
Lease ConcurrencyLimiter::try_acquire(const KeyArg& key, std::error_code& error) const noexcept {
  return try_acquire(key, 1, error);
}
Lease ConcurrencyLimiter::try_acquire(const KeyArg& key, Cost weight,
                                      std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, key, weight), error);
}
Lease ConcurrencyLimiter::try_acquire(const KeyArg& key, Cost weight, const LeaseId& id) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, id, weight); },
      [&](auto& error) { return try_acquire(key, weight, id, error); });
}
Lease ConcurrencyLimiter::try_acquire(const KeyArg& key, Cost weight, const LeaseId& id,
                                      std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, key, weight, id), error);
}

bool ConcurrencyLimiter::release(const KeyArg& key, const LeaseId& id) const {
  std::error_code error;
  const bool released = release(key, id, error);
  if (error && error != Errc::lease_not_live) {
    throw detail::failed_call({type_name, "release"}, error, release_step(key, id));
  }
  return released;
}
bool ConcurrencyLimiter::release(const KeyArg& key, const LeaseId& id,
                                 std::error_code& error) const noexcept {
  const bool released = detail::run(Verbs::release(*this, key, id), error);
  if (!error && !released) error = Errc::lease_not_live;
  return released;
}

void ConcurrencyLimiter::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return Verbs::reset_step(*this, key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}
void ConcurrencyLimiter::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

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
  std::optional<Step> preparation(std::error_code& /*error*/) noexcept override {
    limiter().leases_.send_failed_releases();
    return {};
  }
  void answer_lost() noexcept override {
    limiter().leases_.answer_lost(own_key(), {limiter().limit_.of(own_key()), 0}, cost(), id_);
  }
  Grant grant_of(const Outcome& outcome, Time asked) const {
    static constexpr std::array<Word, output> none{};
    return limiter().leases_.adopt(own_key(), {limiter().limit_.of(own_key()), 0}, cost(), id_,
                                   outcome.decision, outcome.output.empty() ? none : outcome.output,
                                   asked, detail::LeaseManager::fresh_id);
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
