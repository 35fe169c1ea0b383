// guarded(): a call behind a limiter, which waits for the grant, calls, and releases or settles.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "sluice/calls/errors.hpp"
#include "sluice/limiters/lease.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "sluice/reservation.hpp"
#include "sluice/wait_options.hpp"

namespace sluice {

/// The result of a function that learns its cost during the call, for guarded().
template <class T>
struct Costed {
  T value;
  Word cost;  ///< in units of the limiter, 0 or more
};

namespace detail {

[[nodiscard]] inline const Decision& decision_of(const Decision& grant) noexcept { return grant; }
[[nodiscard]] inline const Decision& decision_of(const Reservation& grant) noexcept {
  return grant.decision;
}
[[nodiscard]] inline const Decision& decision_of(const SlotPermit& grant) noexcept {
  return grant.decision;
}
[[nodiscard]] inline const Decision& decision_of(const Lease& grant) noexcept {
  return grant.decision();
}

/// Throws NotGranted.
[[noreturn]] void raise_not_granted(const std::string& name, const Decision& decision);

template <class Grant>
void require_granted(const Grant& grant, const std::string& name) {
  if (!grant) raise_not_granted(name, decision_of(grant));
}

/// Calls the function, with the grant if it accepts that.
template <class Function, class Grant>
decltype(auto) call_with(Function&& function, Grant& grant) {
  if constexpr (std::is_invocable_v<Function, Grant&>) {
    return std::invoke(std::forward<Function>(function), grant);
  } else {
    return std::invoke(std::forward<Function>(function));
  }
}

/// Replaces the estimated cost of the grant with the true cost.
template <class L, class Grant>
void settle_call(const L& limiter, const Key& key, Grant& grant, const SettledCost& cost) {
  if constexpr (requires { limiter.settle(key, grant, cost); }) {
    limiter.settle(key, grant, cost);
  } else {
    limiter.settle(key, grant, cost.actual);
  }
}

template <class T>
inline constexpr bool is_costed = false;
template <class T>
inline constexpr bool is_costed<Costed<T>> = true;

}  // namespace detail

/// Waits for a grant and calls the function. A Lease is released when the function ends, also by an
/// exception. A function that returns Costed<T> is charged its true cost (limiters with settle()),
/// and guarded() returns the value; if it throws, the estimate stays charged.
///
///     const Page page = guarded(bucket, "alice", 1, 5s, [&] { return api.fetch(url); });
///     const Text text = guarded(tokens, "alice", 1000, 5s, [&] {
///       Answer answer = model.ask(prompt);
///       return Costed<Text>{answer.text, answer.tokens};
///     });
///
/// The function may take the grant: `[](Lease& lease) { ... }`. Throws NotGranted if the limiter
/// did not grant by the deadline (the function was not called), std::system_error if its store
/// failed, and what the function throws. With a deadline of 0s it does not wait.
template <class L, class Function>
auto guarded(const L& limiter, const Key& key, Cost cost, const Deadline& deadline,
             Function&& function) {
  auto grant = limiter.acquire(key, cost, deadline);
  detail::require_granted(grant, limiter.name());
  using Result = decltype(detail::call_with(std::forward<Function>(function), grant));
  if constexpr (detail::is_costed<std::remove_cvref_t<Result>>) {
    auto result = detail::call_with(std::forward<Function>(function), grant);
    detail::settle_call(limiter, key, grant, {cost, result.cost});
    return std::move(result.value);
  } else {
    return detail::call_with(std::forward<Function>(function), grant);
  }
}

/// The same for a slot lock, whose slots have no cost.
template <class Function>
auto guarded(const SlotLock& lock, const Key& key, const Deadline& deadline, Function&& function) {
  auto permit = lock.acquire(key, deadline);
  detail::require_granted(permit, lock.name());
  return detail::call_with(std::forward<Function>(function), permit);
}

}  // namespace sluice
