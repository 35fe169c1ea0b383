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
  std::error_code error;
  const Decision decision = try_acquire(key, cost, error);
  if (error) throw detail::failed_call({type_name, "try_acquire"}, error, acquire_step(key, cost));
  return decision;
}

Decision SharedTokenBucket::try_acquire(const Key& key, Cost cost, const RequestId& id) const {
  std::error_code error;
  const Decision decision = try_acquire(key, cost, id, error);
  if (error) throw detail::failed_call({type_name, "try_acquire"}, error, acquire_step(key, cost));
  return decision;
}

Decision SharedTokenBucket::peek(const Key& key, Cost cost) const {
  std::error_code error;
  const Decision decision = peek(key, cost, error);
  if (error) throw detail::failed_call({type_name, "peek"}, error, peek_step(key, cost));
  return decision;
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
  std::error_code error;
  const Reservation result = reserve(key, cost, max_wait, error);
  if (error)
    throw detail::failed_call({type_name, "reserve"}, error, reserve_step(key, cost, max_wait));
  return result;
}

Reservation SharedTokenBucket::borrow(const Key& key, Cost cost, Span max_debt) const {
  std::error_code error;
  const Reservation result = borrow(key, cost, max_debt, error);
  if (error)
    throw detail::failed_call({type_name, "borrow"}, error, reserve_step(key, cost, max_debt));
  return result;
}

Word SharedTokenBucket::refund(const Key& key, Reservation& reservation, Cost amount,
                               std::error_code& error) const noexcept {
  std::array<Word, 3> output{};
  const Decision decision =
      decide(store(), refund_step(key, reservation, amount), error, {}, output);
  if (error) return 0;
  return detail::note_refund(reservation, amount, decision, output);
}

Word SharedTokenBucket::refund(const Key& key, Reservation& reservation, Cost amount) const {
  std::error_code error;
  const Word given = refund(key, reservation, amount, error);
  if (error)
    throw detail::failed_call({type_name, "refund"}, error, refund_step(key, reservation, amount));
  return given;
}

Word SharedTokenBucket::cancel(const Key& key, Reservation& reservation,
                               std::error_code& error) const noexcept {
  return refund(key, reservation, reservation.granted, error);
}

Word SharedTokenBucket::cancel(const Key& key, Reservation& reservation) const {
  std::error_code error;
  const Word given = cancel(key, reservation, error);
  if (error)
    throw detail::failed_call({type_name, "cancel"}, error,
                              refund_step(key, reservation, reservation.granted));
  return given;
}

Settlement SharedTokenBucket::settle(const Key& key, Reservation& reservation, Cost true_cost,
                                     std::error_code& error) const noexcept {
  return detail::settle(*this, key, reservation, true_cost, error);
}

Settlement SharedTokenBucket::settle(const Key& key, Reservation& reservation,
                                     Cost true_cost) const {
  std::error_code error;
  const Settlement result = settle(key, reservation, true_cost, error);
  if (error) throw detail::failed_call({type_name, "settle"}, error, penalize_step(key, true_cost));
  return result;
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
  std::error_code error;
  const Decision decision = block(key, span, error);
  if (error) throw detail::failed_call({type_name, "block"}, error, block_step(key, span));
  return decision;
}

Decision SharedTokenBucket::reward(const Key& key, Cost amount) const {
  std::error_code error;
  const Decision decision = reward(key, amount, error);
  if (error) throw detail::failed_call({type_name, "reward"}, error, reward_step(key, amount));
  return decision;
}

Decision SharedTokenBucket::penalize(const Key& key, Cost amount) const {
  std::error_code error;
  const Decision decision = penalize(key, amount, error);
  if (error) throw detail::failed_call({type_name, "penalize"}, error, penalize_step(key, amount));
  return decision;
}

SharedTokenBucket::Change SharedTokenBucket::try_configure(const Key& key, const Quota& quota,
                                                           std::error_code& error) const noexcept {
  return change(configure_step(key, quota, Inheritance::as_is, true), error);
}

SharedTokenBucket::Change SharedTokenBucket::try_configure(const Key& key,
                                                           const Quota& quota) const {
  std::error_code error;
  const Change result = try_configure(key, quota, error);
  if (error)
    throw detail::failed_call({type_name, "try_configure"}, error,
                              configure_step(key, quota, Inheritance::as_is, true));
  return result;
}

SharedTokenBucket::Change SharedTokenBucket::configure(const Key& key, const Quota& quota,
                                                       Inheritance inheritance,
                                                       std::error_code& error) const noexcept {
  return change(configure_step(key, quota, inheritance), error);
}

SharedTokenBucket::Change SharedTokenBucket::configure(const Key& key, const Quota& quota,
                                                       Inheritance inheritance) const {
  std::error_code error;
  const Change result = configure(key, quota, inheritance, error);
  if (error)
    throw detail::failed_call({type_name, "configure"}, error,
                              configure_step(key, quota, inheritance));
  return result;
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
  std::error_code error;
  auto result = config(key, error);
  if (error) throw detail::failed_call({type_name, "config"}, error, peek_step(key, 0));
  return result;
}

}  // namespace sluice
