// The shared token bucket: its calls, and how one waits for it.
#include "sluice/limiters/shared_token_bucket.hpp"

#include <stdexcept>

#include "src/limiters/keyed_limiter.hpp"
#include "src/limiters/or_throw.hpp"
#include "src/waiting/claim_of.hpp"

namespace sluice {
SharedTokenBucket::SharedTokenBucket(const StoreHandle& store, detail::TextArg name,
                                     Span keep_alive)
    : KeyedLimiter(store, name, {}), keep_alive_(keep_alive) {
  if (keep_alive.count() < 1 || keep_alive.count() > SharedTokenBucketRule::max_keep_alive) {
    throw std::invalid_argument("keep_alive must be 1 us to " +
                                std::to_string(SharedTokenBucketRule::max_keep_alive) +
                                " us, got " + std::to_string(keep_alive.count()) + " us");
  }
}

Decision SharedTokenBucket::try_acquire(const KeyArg& key, Cost cost,
                                        std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, key, cost), error);
}

Decision SharedTokenBucket::try_acquire(const KeyArg& key, Cost cost, const RequestId& id,
                                        std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, key, cost).idempotent(id), error);
}

Decision SharedTokenBucket::peek(const KeyArg& key, Cost cost,
                                 std::error_code& error) const noexcept {
  return detail::run(Verbs::peek(*this, key, cost), error);
}

Decision SharedTokenBucket::try_acquire(const KeyArg& key, Cost cost) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, cost); },
      [&](auto& error) { return try_acquire(key, cost, error); });
}

Decision SharedTokenBucket::try_acquire(const KeyArg& key, Cost cost, const RequestId& id) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, cost); },
      [&](auto& error) { return try_acquire(key, cost, id, error); });
}

Decision SharedTokenBucket::peek(const KeyArg& key, Cost cost) const {
  return detail::or_throw(
      {type_name, "peek"}, [&] { return peek_step(key, cost); },
      [&](auto& error) { return peek(key, cost, error); });
}

Reservation SharedTokenBucket::reservation(const Decision& decision, std::span<const Word> output,
                                           Cost /*cost*/) noexcept {
  if (output.empty()) return {decision, 0};
  // The level and the stamp before the grant, the version of the quota, and the units spent.
  Reservation result(decision, output[0], output.subspan(1));
  if (output.size() > 5) result.limit = output[5];
  return result;
}

Reservation SharedTokenBucket::reserve(const KeyArg& key, Cost cost, SpanArg max_wait,
                                       std::error_code& error) const noexcept {
  return detail::run(Verbs::reserve(*this, key, cost, max_wait), error);
}

Reservation SharedTokenBucket::reserve(const KeyArg& key, Cost cost, SpanArg max_wait) const {
  return detail::or_throw(
      {type_name, "reserve"}, [&] { return reserve_step(key, cost, max_wait); },
      [&](auto& error) { return reserve(key, cost, max_wait, error); });
}

Reservation SharedTokenBucket::borrow(const KeyArg& key, Cost cost, SpanArg max_debt) const {
  return detail::or_throw(
      {type_name, "borrow"}, [&] { return reserve_step(key, cost, max_debt); },
      [&](auto& error) { return borrow(key, cost, max_debt, error); });
}

Decision SharedTokenBucket::block(const KeyArg& key, SpanArg span,
                                  std::error_code& error) const noexcept {
  return detail::run(Verbs::block(*this, key, span), error);
}

Decision SharedTokenBucket::block(const KeyArg& key, SpanArg span) const {
  return detail::or_throw(
      {type_name, "block"}, [&] { return block_step(key, span); },
      [&](auto& error) { return block(key, span, error); });
}

Decision SharedTokenBucket::penalize(const KeyArg& key, Cost amount,
                                     std::error_code& error) const noexcept {
  return detail::run(Verbs::penalize(*this, key, amount), error);
}

Decision SharedTokenBucket::penalize(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "penalize"}, [&] { return penalize_step(key, amount); },
      [&](auto& error) { return penalize(key, amount, error); });
}

std::optional<SharedTokenBucket::Configuration>
SharedTokenBucket::Verbs::AsConfiguration::operator()(const Outcome& outcome,
                                                      std::error_code& error) const noexcept {
  using detail::word_of;
  if (error == Errc::not_configured) error.clear();
  const Word version = word_of(outcome, 0);
  if (error || version == 0) return std::nullopt;
  const Word burst = word_of(outcome, 1);
  Decision decision = outcome.decision;
  decision.limit = burst;
  if (burst == 0) return Configuration{Quota::never(), version, decision};
  if (burst == unlimited) return Configuration{Quota::unlimited(), version, decision};
  const Quota quota = Quota::per(word_of(outcome, 2), Span{word_of(outcome, 3)}).burst(burst);
  return Configuration{quota, version, decision};
}

std::optional<SharedTokenBucket::Configuration> SharedTokenBucket::configuration(
    const KeyArg& key, std::error_code& error) const noexcept {
  return detail::run(Verbs::configuration(*this, key), error);
}

std::optional<SharedTokenBucket::Configuration> SharedTokenBucket::configuration(
    const KeyArg& key) const {
  return detail::or_throw(
      {type_name, "configuration"}, [&] { return peek_step(key, 0); },
      [&](auto& error) { return configuration(key, error); });
}

void SharedTokenBucket::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void SharedTokenBucket::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

Decision SharedTokenBucket::reward(const KeyArg& key, Cost amount,
                                   std::error_code& error) const noexcept {
  return detail::run(Verbs::reward(*this, key, amount), error);
}

Decision SharedTokenBucket::reward(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "reward"}, [&] { return reward_step(key, amount); },
      [&](auto& error) { return reward(key, amount, error); });
}

SharedTokenBucket::Change SharedTokenBucket::try_configure(const KeyArg& key, const Quota& quota,
                                                           std::error_code& error) const noexcept {
  return detail::run(Verbs::try_configure(*this, key, quota), error);
}

SharedTokenBucket::Change SharedTokenBucket::try_configure(const KeyArg& key,
                                                           const Quota& quota) const {
  return detail::or_throw(
      {type_name, "try_configure"},
      [&] { return configure_step(key, quota, Inheritance::as_is, true); },
      [&](auto& error) { return try_configure(key, quota, error); });
}

SharedTokenBucket::Change SharedTokenBucket::configure(const KeyArg& key, const Quota& quota,
                                                       Inheritance inheritance,
                                                       std::error_code& error) const noexcept {
  return detail::run(Verbs::configure(*this, key, quota, inheritance), error);
}

SharedTokenBucket::Change SharedTokenBucket::configure(const KeyArg& key, const Quota& quota,
                                                       Inheritance inheritance) const {
  return detail::or_throw(
      {type_name, "configure"}, [&] { return configure_step(key, quota, inheritance); },
      [&](auto& error) { return configure(key, quota, inheritance, error); });
}

struct SharedTokenBucket::Verbs::Claimed final : detail::ClaimOf<SharedTokenBucket, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().reserve_step(own_key(), cost(), Span{0}); }
};

std::unique_ptr<detail::ClaimedLimit> SharedTokenBucket::Verbs::claim(
    const SharedTokenBucket& bucket, const Key& key, Cost cost) {
  return std::make_unique<Claimed>(bucket, key, cost);
}

template class KeyedLimiter<SharedTokenBucket>;

}  // namespace sluice
