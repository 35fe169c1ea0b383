// Selects the kind of wait by its clock. Threading: thread-safe.
#pragma once

#include "sluice/asio/detail/loop_wait.hpp"
#include "sluice/asio/detail/real_wait.hpp"
#include "sluice/asio/detail/timer_callback_wait.hpp"

namespace sluice::asio::detail {

/// The run loop of `clock`, if the executor belongs to it or to no particular context.
template <class Executor>
[[nodiscard]] TimedLoop* loop_of(Clock& clock, const Executor& executor) {
  TimedLoop* const loop = clock.loop();
  if (loop == nullptr) return nullptr;
  const boost::asio::execution_context* const context = &context_of(executor);
  if (context == &loop->context()) return loop;
  return context == &context_of(boost::asio::system_executor()) ? loop : nullptr;
}

template <class Handler, class IoExecutor>
void start_wait(Clock& clock, Time when, Handler& handler, const IoExecutor& executor,
                Link* timer) {
  if (TimedLoop* const loop = loop_of(clock, executor)) {
    return LoopWait<Handler, IoExecutor>::start(*loop, when, handler, executor, timer);
  }
  TimerCallbackWait<Handler, IoExecutor>::start(
      clock, when, handler, executor, timer, [&](Handler& back) {
        RealWait<Handler, IoExecutor>::start(clock, when, back, executor, timer);
      });
}

/// `span` from now, or the end of time.
[[nodiscard]] inline Time after(const Clock& clock, Span span) {
  const Time now = clock.now();
  return span > Time::max() - now ? Time::max() : now + span;
}

}  // namespace sluice::asio::detail
