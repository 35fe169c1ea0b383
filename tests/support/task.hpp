// The smallest coroutine: starts at once, tells when it is over. Threading: any.
#pragma once

#include <coroutine>
#include <exception>
#include <future>

namespace sluice::test {

struct Task {
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    std::promise<void> over;
    Task get_return_object() { return {over.get_future()}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() { over.set_value(); }
    void unhandled_exception() { over.set_exception(std::current_exception()); }
  };
  std::future<void> over;
};

}  // namespace sluice::test
