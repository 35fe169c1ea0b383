// sleep_until() and sleep_for(): sleeping on a clock, in real time or in a simulated world, with
// the same code. Threading: sleeps are independent of each other.
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

#include "sluice/asio/detail/start_wait.hpp"

namespace sluice::asio {

/// Waits until `clock` shows `when` or later: on the clock of a sim::World in its virtual time, on
/// another VirtualClock until the program moves it, on all others in real time.
///
///     co_await sluice::asio::sleep_until(clock, deadline);
///
/// Completion signature: `void(boost::system::error_code)`. Without a token, the operation is
/// deferred: it starts when it is awaited.
///
/// Per-operation cancellation: all types; completes with operation_aborted.
///
/// Lifetimes: the clock must live until the completion. The handler runs on its associated executor
/// (a callback without one on the system executor: bind one), with its allocator; if its execution
/// context is destroyed first, the handler is destroyed. A time beyond word_limit never comes, one
/// in the past has come already.
template <class CompletionToken>
[[nodiscard]] auto sleep_until(Clock& clock, Time when, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
      [&clock, when](auto handler) {
        const auto executor = boost::asio::get_associated_executor(handler);
        detail::start_wait(clock, when, handler, executor, nullptr);
      },
      token);
}

/// sleep_until(), counted from the start of the operation. Zero or less: pending handlers run
/// first.
template <class CompletionToken>
[[nodiscard]] auto sleep_for(Clock& clock, SpanArg span, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
      [&clock, span](auto handler) {
        const auto executor = boost::asio::get_associated_executor(handler);
        detail::start_wait(clock, detail::after(clock, span), handler, executor, nullptr);
      },
      token);
}

[[nodiscard]] inline auto sleep_until(Clock& clock, Time when) {
  return asio::sleep_until(clock, when, boost::asio::deferred);
}
[[nodiscard]] inline auto sleep_for(Clock& clock, SpanArg span) {
  return asio::sleep_for(clock, span, boost::asio::deferred);
}

}  // namespace sluice::asio
