// All forms of one call.
#include "src/testing/forms.hpp"

#include <atomic>
#include <coroutine>
#include <exception>
#include <future>
#include <memory>

#include "src/testing/context.hpp"

namespace sluice::testing::detail {
namespace {

/// A coroutine that starts at once and owns itself.
struct Detached {
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

Detached await_answer(Store& store, const Plan& plan, std::promise<Answer>& promise) {
  const Answer answer = co_await awaitable_decide(store, plan);
  promise.set_value(answer);
}

Answer by_exception(Store& store, const Plan& plan) {
  try {
    return {{}, decide(store, plan)};
  } catch (const std::system_error& error) {
    return {error.code(), {}};
  }
}

Answer by_error_code(Store& store, const Plan& plan) {
  Answer answer;
  answer.decision = decide(store, plan, answer.error);
  return answer;
}

Answer by_callback(Store& store, const Plan& plan) {
  struct Box {
    std::promise<Answer> promise;
    std::atomic<int> calls{0};
  };
  const auto box = std::make_shared<Box>();
  decide_then(store, plan, [box](std::error_code error, const Decision& decision) {
    if (box->calls.fetch_add(1) == 0) box->promise.set_value({error, decision});
  });
  const Answer answer = box->promise.get_future().get();
  require(box->calls.load() == 1, "the callback ran twice");
  return answer;
}

Answer by_future(Store& store, const Plan& plan) {
  try {
    return {{}, future_decide(store, plan).get()};
  } catch (const std::system_error& error) {
    return {error.code(), {}};
  }
}

Answer by_await(Store& store, const Plan& plan) {
  std::promise<Answer> promise;
  std::future<Answer> future = promise.get_future();
  await_answer(store, plan, promise);
  return future.get();
}

constexpr std::array<CallForm, 5> all_forms{{{"decide", by_exception},
                                             {"decide with error_code", by_error_code},
                                             {"decide_then", by_callback},
                                             {"future_decide", by_future},
                                             {"awaitable_decide", by_await}}};

}  // namespace

std::span<const CallForm> call_forms() noexcept { return all_forms; }

}  // namespace sluice::testing::detail
