// A try of a Call by a coroutine: the function's awaitable, which is cancelled at the end of its
// time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/asio/sleep.hpp"
#include "sluice/calls/call.hpp"

namespace sluice::asio::detail {

template <class Awaitable>
struct AwaitableOf;
template <class T, class Ex>
struct AwaitableOf<boost::asio::awaitable<T, Ex>> {
  using Value = T;
  using Executor = Ex;
};

template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<Costed<T>> {
  using Type = T;
};

/// The awaitable of a function that is called with what was granted, or without.
template <class Granted, class Function>
using CallOf = AwaitableOf<decltype(sluice::detail::call_with(std::declval<Function&>(),
                                                              std::declval<Granted&>()))>;
template <class Granted, class Function>
using ResultOf =
    boost::asio::awaitable<typename ValueOf<typename CallOf<Granted, Function>::Value>::Type,
                           typename CallOf<Granted, Function>::Executor>;

/// What the awaitable of a function has ended with.
template <class Value>
struct Ended {
  std::optional<Value> value{};
  std::exception_ptr thrown{};
};
template <class T>
struct Ended<T&> {
  T* value = nullptr;
  std::exception_ptr thrown{};
};
template <>
struct Ended<void> {
  std::exception_ptr thrown{};
};

/// Awaits the function. Throws nothing.
template <class Function>
boost::asio::awaitable<void, typename CallOf<Grants, Function>::Executor> call_into(
    Ended<typename CallOf<Grants, Function>::Value>& ended, Function& function, Grants& grants,
    StopToken stop) {
  using Value = typename CallOf<Grants, Function>::Value;
  try {
    co_await boost::asio::this_coro::reset_cancellation_state(
        boost::asio::enable_total_cancellation());
    if constexpr (std::is_void_v<Value>) {
      co_await sluice::detail::call_with(function, grants, stop);
    } else if constexpr (std::is_reference_v<Value>) {
      ended.value = std::addressof(co_await sluice::detail::call_with(function, grants, stop));
    } else {
      ended.value.emplace(co_await sluice::detail::call_with(function, grants, stop));
    }
  } catch (...) {
    ended.thrown = std::current_exception();
  }
}

/// Looks at the end of a call when it is due; returns when it has come.
template <class Ex>
boost::asio::awaitable<void, Ex> watch(sluice::detail::CallEnd& end, Clock& clock) {
  for (;;) {
    const Time now = clock.now();
    const Time next = end.look(now);
    if (end.is_over(now)) co_return;
    co_await asio::sleep_until(clock, next, boost::asio::use_awaitable_t<Ex>());
  }
}

/// Throws NotEnded in the place of the error of an awaitable that was cancelled at its end.
[[noreturn]] inline void rethrow_ended(const std::exception_ptr& thrown, bool is_over) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& error) {
    if (!is_over || error.code() != boost::asio::error::operation_aborted) throw;
  }
  throw NotEnded();
}

/// Awaits the function, with a token that is stopped at the end of its time, at which it is
/// cancelled.
template <class Function>
boost::asio::awaitable<typename CallOf<Grants, Function>::Value,
                       typename CallOf<Grants, Function>::Executor>
call_in_time(const sluice::detail::CallTries& tries, Function& function, Grants& grants) {
  using namespace boost::asio::experimental::awaitable_operators;
  using Value = typename CallOf<Grants, Function>::Value;
  using Executor = typename CallOf<Grants, Function>::Executor;
  Clock& clock = tries.store().clock();
  sluice::detail::CallEnd end(tries.end(), grants, {});
  Ended<Value> ended;
  co_await (call_into<Function>(ended, function, grants, end.token()) ||
            watch<Executor>(end, clock));
  if (ended.thrown) rethrow_ended(ended.thrown, end.is_over(clock.now()));
  if constexpr (std::is_reference_v<Value>) {
    co_return *ended.value;
  } else if constexpr (!std::is_void_v<Value>) {
    co_return std::move(*ended.value);
  }
}

}  // namespace sluice::asio::detail
