// What a coroutine awaits: to recognise a coroutine that is given to a blocking call.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "sluice/detail/cxx20.hpp"

namespace sluice::detail {

template <class T>
concept Awaitable = requires(T&& value) {
  static_cast<T&&>(value).await_ready();
  static_cast<T&&>(value).await_resume();
}
|| requires(T&& value) { static_cast<T&&>(value).operator co_await(); }
|| requires(T&& value) { operator co_await(static_cast<T&&>(value)); };

/// True for awaitables of any library; sluice/asio/calls.hpp adds the deferred operations.
template <class T>
inline constexpr bool is_awaitable = Awaitable<T>;

}  // namespace sluice::detail
