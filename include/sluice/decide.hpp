// Four ways to call a store: blocking, with a callback, a future, or co_await. All use
// Store::execute(), and are as thread-safe as the store.
//
// The Asio form (any completion token) is in sluice/asio.hpp.
#pragma once

#include "sluice/detail/cxx20.hpp"  // first: <coroutine> has an #error of its own

#include <concepts>
#include <coroutine>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "sluice/store.hpp"

namespace sluice {

/// Executes a plan and blocks until the store has answered. Throws std::system_error if it could
/// not decide. No allocation; does not wait on a store without I/O. Here and below, a step of a
/// limiter on another store fails with Errc::other_store.
[[nodiscard]] Decision decide(Store& store, const Plan& plan);
[[nodiscard]] Decision decide(Store& store, const Step& step);

/// The same without exceptions: on failure `error` is set and the decision is not allowed.
[[nodiscard]] Decision decide(Store& store, const Plan& plan, std::error_code& error) noexcept;
[[nodiscard]] inline Decision decide(Store& store, const Step& step,
                                     std::error_code& error) noexcept {
  if (!detail::is_foreign(store, step)) [[likely]] {
    return store.decide_one(step, error);
  }
  error = detail::foreign_error(store);
  return {};
}

/// The same; `each` receives the decision on each step, and `output` the output words
/// (Outcome::output). Either may be empty. REQUIRES: a non-empty span has room for all.
[[nodiscard]] Decision decide(Store& store, const Plan& plan, std::error_code& error,
                              std::span<Decision> each, std::span<Word> output = {}) noexcept;

namespace detail {

/// decide() without a look at Step::store, for a limiter's own steps: `store` is the limiter's, or
/// ended_store(), which fails the call as decide() would. The frequent calls use it.
[[nodiscard]] inline Decision decide_own(Store& store, const Step& step,
                                         std::error_code& error) noexcept {
  return store.decide_one(step, error);
}
[[nodiscard]] Decision decide_own(Store& store, const Plan& plan, std::error_code& error,
                                  std::span<Decision> each = {},
                                  std::span<Word> output = {}) noexcept;

/// The name of a call in exceptions, `limiter`::`verb`. Views of static text.
struct CallName {
  const char* limiter;
  const char* verb;
  [[nodiscard]] std::string text() const;
};
/// The exception of a failed call: its name, the reason and, where an argument is at fault, its
/// value and the allowed range next to the other arguments. `step` is the step at fault.
[[nodiscard]] std::system_error failed_call(const CallName& call, const std::error_code& error,
                                            const Plan& plan, std::uint16_t step = 0);
/// The part of a plan that an exception needs and that outlives its steps and keys: the number of
/// steps and, if it is one, its operation and arguments.
struct AskedPlan {
  explicit AskedPlan(const Plan& plan) noexcept;
  std::size_t steps;
  const Operation* operation = nullptr;
  Arguments args{};
};
[[nodiscard]] std::system_error failed_call(const CallName& call, const std::error_code& error,
                                            const AskedPlan& plan, std::uint16_t step = 0);
/// The same with a given description of the fault, such as "amount 4, allowed 0 to 3".
[[nodiscard]] std::system_error failed_with(const CallName& call, const std::error_code& error,
                                            const std::string& given);
/// Store::reason_of(); null for errors about the end of the store or of a wait, when the store may
/// be gone.
[[nodiscard]] std::shared_ptr<const std::string> reason_of(const Store& store,
                                                           const std::error_code& error) noexcept;
/// Adds the reason, and the details in `answer`, to the next exception of this thread about
/// `error`.
void note_reason(const std::error_code& error, std::shared_ptr<const std::string> reason,
                 const Decision& answer) noexcept;
/// "amount 4, allowed 0 to 3", without the range if the value is in it.
[[nodiscard]] std::string not_allowed(const char* name, Word value, Word least, Word most);
/// decide_own(), whose exceptions name the call.
Decision decide_as(const CallName& call, Store& store, const Plan& plan);
Decision decide_as(const CallName& call, Store& store, const Step& step);

}  // namespace detail

/// Executes independent plans as one batch and blocks until all are answered: results[i] and
/// errors[i] belong to plans[i]. REQUIRES: the three spans have the same size.
void decide_batch(Store& store, std::span<const Plan> plans, std::span<Decision> results,
                  std::span<std::error_code> errors) noexcept;

/// A callback: `handler(std::error_code, Decision)` or `handler(const Outcome&)`.
template <class Handler>
concept AnswerHandler =
    std::invocable<Handler, std::error_code, Decision> || std::invocable<Handler, const Outcome&>;

namespace detail {

/// A completion that calls the handler and destroys it. One allocation.
template <AnswerHandler Handler>
[[nodiscard]] Completion completion_of(Handler handler) {
  auto owned = std::make_unique<Handler>(std::move(handler));
  const auto run = [](void* context, const Outcome& outcome) noexcept {
    const std::unique_ptr<Handler> mine(static_cast<Handler*>(context));
    if constexpr (std::invocable<Handler, const Outcome&>) {
      (*mine)(outcome);
    } else {
      (*mine)(outcome.error, outcome.decision);
    }
  };
  return {run, owned.release()};
}

/// A completion and the future that it fulfils; `failure(error, decision)` makes the exception.
struct Promised {
  Completion completion;
  std::future<Decision> future;
};
template <class Failure>
[[nodiscard]] Promised promised(Failure failure) {
  std::promise<Decision> promise;
  auto future = promise.get_future();
  auto fulfil = [promise = std::move(promise), failure = std::move(failure)](
                    std::error_code error, const Decision& decision) mutable {
    if (!error) return promise.set_value(decision);
    promise.set_exception(std::make_exception_ptr(failure(error, decision)));
  };
  return {completion_of(std::move(fulfil)), std::move(future)};
}

}  // namespace detail

/// Executes a plan and calls `handler(std::error_code, Decision)` or `handler(const Outcome&)`
/// once: before this returns, or later on a thread of the store. The handler must not throw
/// (std::terminate). One allocation.
template <AnswerHandler Handler>
void decide_then(Store& store, const Plan& plan, Handler handler) {
  detail::execute_own(store, plan, detail::completion_of(std::move(handler)));
}

/// Executes a plan and returns its decision as a future; a failure is a std::system_error in it.
[[nodiscard]] std::future<Decision> future_decide(Store& store, const Plan& plan);

namespace detail {
/// future_decide() for a call of a limiter, whose name its exceptions carry.
[[nodiscard]] std::future<Decision> future_decide_as(const CallName& call, Store& store,
                                                     const Plan& plan);
}  // namespace detail

/// The result of an awaited call.
struct Answer {
  std::error_code error;
  Decision decision;
};

namespace detail {

/// Base of the awaitables: resumes the coroutine when the answer has come.
class Awaited {
 public:
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] Answer await_resume() const noexcept { return answer_; }

 protected:
  Awaited() = default;
  ~Awaited() = default;

  /// Starts the call with `start(Completion)`; returns the result of await_suspend().
  template <class Start>
  bool suspend(std::coroutine_handle<> waiter, Start start) {
    waiter_ = waiter;
    start(Completion(&Awaited::complete, this));
    return goes_to_sleep();
  }

 private:
  static void complete(void* self, const Outcome& outcome) noexcept;
  bool goes_to_sleep() noexcept;

  Answer answer_;
  std::coroutine_handle<> waiter_;
  std::atomic<bool> met_{false};  // set by whichever comes first: the answer or the suspension
};

}  // namespace detail

/// An awaitable call, for any coroutine that awaits plain awaitables:
///
///     const auto [error, decision] = co_await awaitable_decide(store, plan);
///
/// It resumes at once, or on the thread of the store that completes the call. The keys' bytes, and
/// the steps of a plan, must live until the co_await has ended: await it in the expression that
/// makes it. Destroying the coroutine while it waits is undefined behaviour: cancel the call and
/// let the coroutine end.
class [[nodiscard]] DecideAwaitable : public detail::Awaited {
 public:
  DecideAwaitable(Store& store, const Plan& plan);
  /// Copies the step, so that a function can return the awaitable.
  DecideAwaitable(Store& store, const Step& step);

  bool await_suspend(std::coroutine_handle<> waiter) noexcept;

 private:
  Store& store_;
  std::optional<Step> step_;  // what plan_ views, if it was made of one step
  Plan plan_;
};

/// Makes a DecideAwaitable.
[[nodiscard]] inline DecideAwaitable awaitable_decide(Store& store, const Plan& plan) {
  return {store, plan};
}
[[nodiscard]] inline DecideAwaitable awaitable_decide(Store& store, const Step& step) {
  return {store, step};
}

}  // namespace sluice
