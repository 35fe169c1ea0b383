// How a Call is run by a coroutine.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/asio/acquire.hpp"
#include "sluice/asio/decide.hpp"
#include "sluice/asio/detail/call_in_time.hpp"
#include "sluice/asio/detail/pending_call.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/calls/call.hpp"
#include "sluice/calls/guarded.hpp"

namespace sluice::detail {
template <class T>
requires boost::asio::is_deferred<T>::value inline constexpr bool is_awaitable<T> = true;
}  // namespace sluice::detail

namespace sluice::asio {

namespace detail {

/// True if the function must be told of an end, or cancelled at it.
template <class Function>
bool needs_end(const sluice::detail::CallTries& tries) noexcept {
  return sluice::detail::takes_stop<Function&, Grants> || tries.end() != Time::max();
}

/// Settles what a claim was granted; see ClaimedLimit::settle().
struct SettleRequest {
  [[nodiscard]] auto verb() const noexcept { return limit->settle(step); }
  const sluice::detail::ClaimedLimit* limit;
  Step step;
};

/// A token without a cancellation slot: settling finishes even if the coroutine is cancelled.
template <class Ex>
[[nodiscard]] auto to_the_end() {
  return boost::asio::bind_cancellation_slot(
      boost::asio::cancellation_slot(), boost::asio::as_tuple(boost::asio::use_awaitable_t<Ex>()));
}

/// Charges the true cost for each Estimate of the call. The error is returned, so that the caller
/// can end what it has begun.
template <class Ex>
boost::asio::awaitable<std::exception_ptr, Ex> settle(const sluice::detail::CallTries& tries,
                                                      Grants& grants, Cost actual) {
  auto token = to_the_end<Ex>();
  const std::size_t count = tries.claims().size();
  std::exception_ptr failed;
  try {
    tries.learn(grants, actual);
    for (auto i = tries.next_estimate(0); i < count; i = tries.next_estimate(i + 1)) {
      sluice::detail::ClaimedLimit& limit = *grants.limits()[i];
      const auto step = limit.settle_step(actual);
      if (!step) continue;
      const auto [failure, settled] = co_await initiate(SettleRequest{&limit, *step}, token);
      const auto error = sluice::detail::settle_error(failure, settled);
      if (error) throw sluice::detail::failed_call({"Grants", "settle"}, error, *step);
      limit.settled();
    }
  } catch (...) {
    failed = std::current_exception();
  }
  co_return failed;
}

/// The asynchronous form of Grants::refund(). The grants must live until the completion.
template <class CompletionToken>
[[nodiscard]] auto async_refund_all(Grants& grants, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
      [&grants](auto handler) {
        auto executor = boost::asio::prefer(boost::asio::get_associated_executor(handler),
                                            boost::asio::execution::outstanding_work.tracked);
        auto complete = [handler = std::move(handler), executor](const Outcome&) mutable {
          boost::asio::post(executor, [handler = std::move(handler)]() mutable {
            std::move(handler)(boost::system::error_code{});
          });
        };
        sluice::detail::refund_all(grants.limits(),
                                   sluice::detail::completion_of(std::move(complete)));
      },
      token);
}

/// Closes the gate and tells limits that learn, and refunds what the API did not serve.
template <class Ex>
boost::asio::awaitable<boost::system::error_code, Ex> give_back(
    const sluice::detail::CallTries& tries, Grants& grants,
    const sluice::detail::CallTries::Failed& failed) {
  auto token = to_the_end<Ex>();
  boost::system::error_code failure;
  const std::vector<Step> steps = sluice::detail::CallTries::reports(failed, grants);
  if (!steps.empty()) {
    const auto [error, told] = co_await async_decide(tries.store(), steps, token);
    failure = error;
  }
  if (failed.refunds) co_await async_refund_all(grants, boost::asio::use_awaitable_t<Ex>());
  grants = {};  // its leases are free during the pause
  co_return failure;
}

/// Pauses before the next try, if no gate was closed. False: no further try.
template <class Ex>
boost::asio::awaitable<bool, Ex> pause(const sluice::detail::CallTries& tries,
                                       const sluice::detail::CallTries::Failed& next) {
  if (next.close || !next.retries) co_return next.retries;
  Clock& clock = tries.store().clock();
  const Time now = clock.now();
  if (next.pause > tries.deadline() - now) co_return false;
  co_await asio::sleep_until(clock, now + next.pause, boost::asio::use_awaitable_t<Ex>());
  co_return true;
}

[[nodiscard]] inline AsyncWaitOptions waits_of(const BackoffOptions& options) {
  return {options.priority, options.flow, options.weight};
}

/// The coroutine of a Call, which it copies.
template <class Function>
ResultOf<Grants, Function> run(sluice::Call call, Function function) {
  using Result = CallOf<Grants, Function>;
  using Executor = typename Result::Executor;
  constexpr boost::asio::use_awaitable_t<Executor> token;
  constexpr bool settles = sluice::detail::is_costed<typename Result::Value>;
  sluice::detail::CallTries tries(call.alternatives(), call.options(), settles);
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  for (;;) {
    tries.begin();
    Grants grants;
    if (call.alternatives().size() == 1) {
      grants = co_await async_wait_for<Grants>(sluice::detail::limits_of(tries.claims()),
                                               tries.arrival(), tries.deadline(),
                                               waits_of(tries.options()), token);
    } else {
      grants = co_await async_wait_for<Grants, sluice::detail::FirstOfWait>(
          call.alternatives().limits(), tries.arrival(), tries.deadline(),
          waits_of(tries.options()), token);
    }
    tries.granted(grants);
    std::optional<sluice::detail::CallTries::Failed> next;
    std::exception_ptr thrown;
    try {
      auto awaitable = needs_end<Function>(tries) ? call_in_time(tries, function, grants)
                                                  : sluice::detail::call_with(function, grants);
      if constexpr (settles) {
        auto result = co_await std::move(awaitable);
        co_await boost::asio::this_coro::throw_if_cancelled(false);
        const auto error = co_await settle<Executor>(tries, grants, result.cost);
        co_await boost::asio::this_coro::throw_if_cancelled(throws);
        sluice::detail::require_kept(grants, error, result.value);
        co_return std::move(result.value);
      } else if constexpr (std::is_void_v<typename Result::Value>) {
        co_await std::move(awaitable);
        sluice::detail::require_kept(grants);
        co_return;
      } else {
        typename Result::Value result = co_await std::move(awaitable);
        sluice::detail::require_kept(grants, nullptr, result);
        co_return std::forward<typename Result::Value>(result);
      }
    } catch (const RateLimited& refusal) {
      next = tries.failed(refusal);
      thrown = std::current_exception();  // a handler cannot contain co_await
    } catch (const Transient& failure) {
      next = tries.failed(failure);
      thrown = std::current_exception();
    }
    co_await boost::asio::this_coro::throw_if_cancelled(false);
    const auto failure = co_await give_back<Executor>(tries, grants, *next);
    co_await boost::asio::this_coro::throw_if_cancelled(throws);
    if (failure) throw boost::system::system_error(failure);
    const bool again = co_await pause<Executor>(tries, *next);
    if (!again) std::rethrow_exception(thrown);
  }
}

template <class Grant, class Function>
auto guard(const Claim& claim, const Deadline& deadline, Function function,
           const AsyncWaitOptions& options) {
  sluice::Call call({claim}, sluice::detail::single_try(deadline, options));
  if constexpr (sluice::detail::takes_stop<Function&, Grant>) {
    auto told = [function = std::move(function)](Grants& grants, const StopToken& stop) mutable {
      return sluice::detail::call_with(function, grants.get<Grant>(0), stop);
    };
    return run(std::move(call), std::move(told));
  } else {
    auto with_grant = [function = std::move(function)](Grants& grants) mutable {
      return sluice::detail::call_with(function, grants.get<Grant>(0));
    };
    return run(std::move(call), std::move(with_grant));
  }
}

}  // namespace detail

}  // namespace sluice::asio
