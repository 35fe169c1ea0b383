// Task: the coroutines of the engine. Threading: the thread of the World.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <coroutine>
#include <exception>
#include <utility>

#include "sim/scenario/task_frame.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/sim/world.hpp"
#include "sluice/sim/world/spawn.hpp"

namespace sluice::sim::scenario {

/// A coroutine, which starts when it is awaited. It awaits other tasks and deferred operations on
/// the World's executor, as boost::asio::awaitable does, with the same events, but without its
/// cancellation and executors: its frames are recycled, and one resumes another directly.
template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : detail::ResultFrame<T> {
    Task get_return_object() noexcept { return Task(Handle::from_promise(*this)); }
  };

  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (frame_) frame_.destroy();
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  [[nodiscard]] std::coroutine_handle<> await_suspend(
      std::coroutine_handle<Promise> caller) noexcept {
    frame_.promise().called_by(caller);
    return frame_;
  }
  T await_resume() { return frame_.promise().take(); }

 private:
  using Handle = std::coroutine_handle<promise_type>;
  explicit Task(Handle frame) noexcept : frame_(frame) {}
  Handle frame_;
};

namespace detail {
template <class Done>
Root run(World&, Task<> task, Done done) {
  std::exception_ptr failure;
  try {
    co_await std::move(task);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await RootFrame::End();
  std::move(done)(failure);
}
}  // namespace detail

/// World::spawn() of a task.
inline void spawn(World& world, Task<> task) {
  world.get_executor().execute(detail::run(world, std::move(task), sim::detail::Rethrow{}));
}

/// A task as a deferred operation, for coroutines of another kind. Completion signature:
/// `void(std::exception_ptr)`. REQUIRES: the task exists when the operation starts, which takes it.
[[nodiscard]] inline auto as_operation(World& world, Task<>& task) {
  return boost::asio::async_initiate<const boost::asio::deferred_t, void(std::exception_ptr)>(
      [&world, &task](auto handler) {
        world.get_executor().execute(detail::run(world, std::move(task), std::move(handler)));
      },
      boost::asio::deferred);
}

}  // namespace sluice::sim::scenario
