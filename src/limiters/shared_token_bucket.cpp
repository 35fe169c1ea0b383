// The calls of the shared token bucket.
#include "sluice/limiters/shared_token_bucket.hpp"

#include <array>
#include <stdexcept>

#include "src/limiters/refund_calls.hpp"

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

Decision SharedTokenBucket::ask(const Plan& plan, std::error_code& error) const noexcept {
  std::array<Word, 4> output{};
  Decision decision = decide(store(), plan, error, {}, output);
  decision.limit = output[1];
  return decision;
}

SharedTokenBucket::Change SharedTokenBucket::change(const Step& step,
                                                    std::error_code& error) const noexcept {
  std::array<Word, 2> output{};
  static_cast<void>(decide(store(), step, error, {}, output));
  return {output[1] != 0, output[0]};
}

Decision SharedTokenBucket::try_acquire(const Key& key, Cost cost) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, cost); },
      [&](auto& error) { return try_acquire(key, cost, error); });
}

Decision SharedTokenBucket::try_acquire(const Key& key, Cost cost, const RequestId& id) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, cost); },
      [&](auto& error) { return try_acquire(key, cost, id, error); });
}

Decision SharedTokenBucket::peek(const Key& key, Cost cost) const {
  return detail::or_throw(
      {type_name, "peek"}, [&] { return peek_step(key, cost); },
      [&](auto& error) { return peek(key, cost, error); });
}

Reservation SharedTokenBucket::reservation(const Decision& decision,
                                           std::span<const Word> output) noexcept {
  Reservation result(decision, output);
  if (output.size() > 5) result.decision.limit = output[5];
  return result;
}

Reservation SharedTokenBucket::reserve(const Key& key, Cost cost, Span max_wait,
                                       std::error_code& error) const noexcept {
  std::array<Word, 6> output{};
  const Decision decision = decide(store(), reserve_step(key, cost, max_wait), error, {}, output);
  return reservation(decision, output);
}

Reservation SharedTokenBucket::reserve(const Key& key, Cost cost, Span max_wait) const {
  return detail::or_throw(
      {type_name, "reserve"}, [&] { return reserve_step(key, cost, max_wait); },
      [&](auto& error) { return reserve(key, cost, max_wait, error); });
}

Reservation SharedTokenBucket::borrow(const Key& key, Cost cost, Span max_debt) const {
  return detail::or_throw(
      {type_name, "borrow"}, [&] { return reserve_step(key, cost, max_debt); },
      [&](auto& error) { return borrow(key, cost, max_debt, error); });
}

Word SharedTokenBucket::refund(const Key& key, Reservation& reservation, Cost amount,
                               std::error_code& error) const noexcept {
  return detail::refund(*this, key, reservation, amount, error);
}

Word SharedTokenBucket::refund(const Key& key, Reservation& reservation, Cost amount) const {
  return detail::refund_as("refund", *this, key, reservation, amount);
}

Word SharedTokenBucket::cancel(const Key& key, Reservation& reservation,
                               std::error_code& error) const noexcept {
  return detail::refund(*this, key, reservation, reservation.granted, error);
}

Word SharedTokenBucket::cancel(const Key& key, Reservation& reservation) const {
  return detail::refund_as("cancel", *this, key, reservation, reservation.granted);
}

Settlement SharedTokenBucket::settle(const Key& key, Reservation& reservation, Cost true_cost,
                                     std::error_code& error) const noexcept {
  return detail::settle(*this, key, reservation, true_cost, error);
}

Settlement SharedTokenBucket::settle(const Key& key, Reservation& reservation,
                                     Cost true_cost) const {
  return detail::settle(*this, key, reservation, true_cost);
}

Decision SharedTokenBucket::adjust(const Step& step, std::error_code& error) const noexcept {
  std::array<Word, 2> output{};
  Decision decision = decide(store(), step, error, {}, output);
  decision.limit = output[1];
  return decision;
}

void SharedTokenBucket::reset(const Key& key) const {
  std::error_code error;
  reset(key, error);
  if (error) throw detail::failed_call({type_name, "reset"}, error, reset_step(key));
}

Decision SharedTokenBucket::block(const Key& key, Span span) const {
  return detail::or_throw(
      {type_name, "block"}, [&] { return block_step(key, span); },
      [&](auto& error) { return block(key, span, error); });
}

Decision SharedTokenBucket::reward(const Key& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "reward"}, [&] { return reward_step(key, amount); },
      [&](auto& error) { return reward(key, amount, error); });
}

Decision SharedTokenBucket::penalize(const Key& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "penalize"}, [&] { return penalize_step(key, amount); },
      [&](auto& error) { return penalize(key, amount, error); });
}

SharedTokenBucket::Change SharedTokenBucket::try_configure(const Key& key, const Quota& quota,
                                                           std::error_code& error) const noexcept {
  return change(configure_step(key, quota, Inheritance::as_is, true), error);
}

SharedTokenBucket::Change SharedTokenBucket::try_configure(const Key& key,
                                                           const Quota& quota) const {
  return detail::or_throw(
      {type_name, "try_configure"},
      [&] { return configure_step(key, quota, Inheritance::as_is, true); },
      [&](auto& error) { return try_configure(key, quota, error); });
}

SharedTokenBucket::Change SharedTokenBucket::configure(const Key& key, const Quota& quota,
                                                       Inheritance inheritance,
                                                       std::error_code& error) const noexcept {
  return change(configure_step(key, quota, inheritance), error);
}

SharedTokenBucket::Change SharedTokenBucket::configure(const Key& key, const Quota& quota,
                                                       Inheritance inheritance) const {
  return detail::or_throw(
      {type_name, "configure"}, [&] { return configure_step(key, quota, inheritance); },
      [&](auto& error) { return configure(key, quota, inheritance, error); });
}

std::optional<SharedTokenBucket::Setting> SharedTokenBucket::config(
    const Key& key, std::error_code& error) const noexcept {
  std::array<Word, 4> output{};
  Decision decision = decide(store(), peek_step(key, 0), error, {}, output);
  if (error == Errc::not_configured) error.clear();
  if (error || output[0] == 0) return std::nullopt;
  decision.limit = output[1];
  return Setting{Quota::per(output[2], Span{output[3]}).burst(output[1]), output[0], decision};
}

std::optional<SharedTokenBucket::Setting> SharedTokenBucket::config(const Key& key) const {
  return detail::or_throw(
      {type_name, "config"}, [&] { return peek_step(key, 0); },
      [&](auto& error) { return config(key, error); });
}

}  // namespace sluice
