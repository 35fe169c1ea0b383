// guarded(): a call behind one limiter. The simplest Call.
#pragma once

#include <type_traits>

#include "sluice/calls/call.hpp"
#include "sluice/limiters/slot_lock.hpp"

namespace sluice {

namespace detail {

/// The claim of a guarded call: an Estimate where the limiter can settle.
template <class L>
Claim guarded_claim(const L& limiter, const KeyArg& key, Cost cost) {
  if constexpr (Settled<L>) {
    return {limiter, key, Estimate{cost}};
  } else {
    return {limiter, key, cost};
  }
}

/// `options`: WaitOptions, or what has the same members.
template <class Options>
BackoffOptions single_try(const Deadline& deadline, const Options& options) {
  return {.deadline = deadline,
          .attempts = 1,
          .priority = options.priority,
          .flow = options.flow,
          .weight = options.weight};
}

template <class Grant, class Function>
auto guard(const Claim& claim, const Deadline& deadline, Function& function,
           const WaitOptions& options) {
  const Call call({claim}, single_try(deadline, options));
  if constexpr (takes_stop<Function&, Grant>) {
    const auto told = [&](Grants& grants, const StopToken& stop) -> decltype(auto) {
      return call_with(function, grants.get<Grant>(0), stop);
    };
    return call(told, options.stop);
  } else {
    const auto with_grant = [&](Grants& grants) -> decltype(auto) {
      return call_with(function, grants.get<Grant>(0));
    };
    return call(with_grant, options.stop);
  }
}

}  // namespace detail

/// Waits for a grant and calls the function. A Lease is released when the function ends, also by an
/// exception. A function that returns Costed<T> is charged its true cost (limiters with settle()),
/// and guarded() returns the value; if it throws, the estimate stays charged, except for
/// RateLimited and Transient(Served::no): the API did not serve it. There is no second try.
///
///     const Page page = guarded(bucket, "alice", 1, 5s, [&] { return api.fetch(url); });
///     const Text text = guarded(tokens, "alice", 1000, 5s, [&] {
///       Answer answer = model.ask(prompt);
///       return Costed<Text>{answer.text, answer.tokens};
///     });
///
/// The function may take the grant, a stop token, or both: `[](Lease& lease) { ... }`,
/// `[](Lease& lease, const StopToken& stop) { ... }`; see Call. Throws NotGranted if the limiter
/// did not grant by the deadline (the function was not called), LeaseLost with the result if its
/// lease was lost during the call, std::system_error if its store failed, and what the function
/// throws. A time by which the function must end is an option of Call. With a deadline of 0s it
/// does not wait.
template <class L, class Function>
auto guarded(const L& limiter, const KeyArg& key, Cost cost, const Deadline& deadline,
             Function&& function, const WaitOptions& options = {}) {
  return detail::guard<typename L::Grant>(detail::guarded_claim(limiter, key, cost), deadline,
                                          function, options);
}

/// The same for a slot lock, whose slots have no cost.
template <class Function>
auto guarded(const SlotLock& lock, const KeyArg& key, const Deadline& deadline, Function&& function,
             const WaitOptions& options = {}) {
  return detail::guard<SlotPermit>({lock, key}, deadline, function, options);
}

}  // namespace sluice
