// What World::spawn() accepts. Threading: the thread of the World.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <concepts>
#include <exception>
#include <type_traits>

namespace sluice::sim::detail {

template <class T>
inline constexpr bool is_coroutine = false;
template <class Executor>
inline constexpr bool is_coroutine<boost::asio::awaitable<void, Executor>> = true;

/// A callable without arguments that returns an awaitable without a result.
template <class F>
concept MakesCoroutine = std::invocable < std::decay_t<F>
& > &&is_coroutine<std::invoke_result_t<std::decay_t<F>&>>;

/// The end of a coroutine that nobody waits for: its exception goes on.
struct Rethrow {
  void operator()(const std::exception_ptr& failure) const {
    if (failure) std::rethrow_exception(failure);
  }
};

}  // namespace sluice::sim::detail
