// The calls of the concurrency limiter.
#include "sluice/limiters/concurrency_limiter.hpp"

#include <array>
#include <stdexcept>

#include "src/waiting/release.hpp"

namespace sluice {

ConcurrencyLimiter::ConcurrencyLimiter(const StoreHandle& store, std::string name, Word limit,
                                       const LeaseOptions& options)
    : manager_(store, std::move(name), options, queues()), limit_(limit) {
  if (limit < 1 || limit > word_limit) {
    throw std::invalid_argument("ConcurrencyLimiter: limit must be 1 to 2^52, got " +
                                std::to_string(limit));
  }
}

Lease ConcurrencyLimiter::try_acquire(const Key& key, Cost weight) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, LeaseId{}, weight); },
      [&](auto& error) { return try_acquire(key, weight, error); });
}
Lease ConcurrencyLimiter::try_acquire(const Key& key, std::error_code& error) const noexcept {
  return try_acquire(key, 1, error);
}
Lease ConcurrencyLimiter::try_acquire(const Key& key, Cost weight,
                                      std::error_code& error) const noexcept {
  return manager_.grant(key, {limit_, 0}, weight, error);
}
Lease ConcurrencyLimiter::try_acquire(const Key& key, Cost weight, const LeaseId& id) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, id, weight); },
      [&](auto& error) { return try_acquire(key, weight, id, error); });
}
Lease ConcurrencyLimiter::try_acquire(const Key& key, Cost weight, const LeaseId& id,
                                      std::error_code& error) const noexcept {
  return manager_.grant(key, {limit_, 0}, weight, id, error);
}

bool ConcurrencyLimiter::release(const Key& key, const LeaseId& id) const {
  std::error_code error;
  const bool given = release(key, id, error);
  if (error && error != Errc::lease_not_live) {
    throw detail::failed_call({type_name, "release"}, error, release_step(key, id));
  }
  return given;
}
bool ConcurrencyLimiter::release(const Key& key, const LeaseId& id,
                                 std::error_code& error) const noexcept {
  const detail::Release given(release_step(key, id), queues());
  std::array<Word, 1 + WaitLineRule::output> told{};
  static_cast<void>(decide(store(), given.steps(), error, {}, {told.data(), given.output()}));
  if (error) return false;
  given.wake(store(), told);
  if (told[0] != 1) error = Errc::lease_not_live;
  return !error;
}

void ConcurrencyLimiter::reset(const Key& key) const {
  decide_as("reset", manager_.reset_step(key, limit_));
}
void ConcurrencyLimiter::reset(const Key& key, std::error_code& error) const noexcept {
  static_cast<void>(decide(store(), manager_.reset_step(key, limit_), error));
}

}  // namespace sluice
