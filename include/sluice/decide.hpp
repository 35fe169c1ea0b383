// The forms of one call to a store: blocking, callback, future and co_await. All of them sit on
// Store::execute(). Thread-safe as the store is.
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

/// Blocks until the store has answered. Throws std::system_error if it could not decide.
/// No allocation; on a store without I/O, no waiting.
[[nodiscard]] Decision decide(Store& store, const Plan& plan);

/// The same without exceptions: on failure `error` is set and the decision is not allowed.
[[nodiscard]] Decision decide(Store& store, const Plan& plan, std::error_code& error) noexcept;

/// The same; `each` receives the decision of each step, and `output` what the operations tell
/// beyond a decision (Outcome::output); either may be empty. REQUIRES: room for all, or none.
[[nodiscard]] Decision decide(Store& store, const Plan& plan, std::error_code& error,
                              std::span<Decision> each, std::span<Word> output = {}) noexcept;

namespace detail {

/// The call that an exception names: `limiter`::`verb`. Views of text that outlives it.
struct CallName {
  const char* limiter;
  const char* verb;
  [[nodiscard]] std::string text() const;
};
/// What a call that failed throws: its name, the reason, and where its arguments are at fault, the
/// value at fault and what is allowed beside the others. `step` is the step at fault.
[[nodiscard]] std::system_error failed_call(const CallName& call, const std::error_code& error,
                                            const Plan& plan, std::uint16_t step = 0);
/// What an exception can tell of a plan whose steps and keys may be gone by then: how many steps it
/// had, and if it was one, which.
struct AskedPlan {
  explicit AskedPlan(const Plan& plan) noexcept;
  std::size_t steps;
  const Operation* operation = nullptr;
  Arguments args{};
};
[[nodiscard]] std::system_error failed_call(const CallName& call, const std::error_code& error,
                                            const AskedPlan& plan, std::uint16_t step = 0);
/// The same where the caller knows what was wrong: `given`, such as "amount 4, allowed 0 to 3".
[[nodiscard]] std::system_error failed_with(const CallName& call, const std::error_code& error,
                                            const std::string& given);
/// Store::reason_of(), but for the end of the store or of a wait, when it may be too late to ask.
[[nodiscard]] std::shared_ptr<const std::string> reason_of(const Store& store,
                                                           const std::error_code& error) noexcept;
/// Has the next exception of this thread about `error` tell the reason as well, and what `answer`,
/// the decision that came with the error, says of it.
void note_reason(const std::error_code& error, std::shared_ptr<const std::string> reason,
                 const Decision& answer) noexcept;
/// "amount 4, allowed 0 to 3", without the range if the value lies in it.
[[nodiscard]] std::string not_allowed(const char* name, Word value, Word least, Word most);
/// decide() for a limiter's own call, in whose name it throws.
Decision decide_as(const CallName& call, Store& store, const Plan& plan);

}  // namespace detail

/// Decides plans that do not depend on each other, as one batch: results[i] and errors[i] answer
/// plans[i]. Blocks until all are answered. REQUIRES: three spans of the same size.
void decide_batch(Store& store, std::span<const Plan> plans, std::span<Decision> results,
                  std::span<std::error_code> errors) noexcept;

/// What receives an answer: `handler(std::error_code, Decision)` or `handler(const Outcome&)`.
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

/// A completion and the future that it fulfils; what fails it is `failure(error, decision)`.
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

/// Calls `handler(std::error_code, Decision)`, or `handler(const Outcome&)`, once: before this
/// returns, or later on a thread of the store. The handler must not throw (std::terminate). One
/// allocation.
template <AnswerHandler Handler>
void decide_then(Store& store, const Plan& plan, Handler handler) {
  store.execute(plan, detail::completion_of(std::move(handler)));
}

/// The answer as a future; a failure is a std::system_error in it.
[[nodiscard]] std::future<Decision> future_decide(Store& store, const Plan& plan);

namespace detail {
/// future_decide() for a limiter's own call, which its failure names.
[[nodiscard]] std::future<Decision> future_decide_as(const CallName& call, Store& store,
                                                     const Plan& plan);
}  // namespace detail

/// The answer of an awaited call.
struct Answer {
  std::error_code error;
  Decision decision;
};

namespace detail {

/// What the awaitables of a call have in common: the meeting of its answer and its coroutine.
class Awaited {
 public:
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] Answer await_resume() const noexcept { return answer_; }

 protected:
  Awaited() = default;
  ~Awaited() = default;

  /// Starts the call by `start(Completion)`; what await_suspend() returns.
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

/// `const auto [error, decision] = co_await awaitable_decide(store, plan);` in any coroutine that
/// awaits plain awaitables. Resumes at once, or on the thread of the store that completes the call.
/// The keys' bytes, and the steps of a plan, must live until the co_await is over: await it in the
/// expression that makes it. If the coroutine is destroyed while it waits, the behaviour is
/// undefined: cancel it and let it end.
class [[nodiscard]] DecideAwaitable : public detail::Awaited {
 public:
  DecideAwaitable(Store& store, const Plan& plan);
  /// Keeps the step, so that a function may make it and return the awaitable.
  DecideAwaitable(Store& store, const Step& step);

  bool await_suspend(std::coroutine_handle<> waiter) noexcept;

 private:
  Store& store_;
  std::optional<Step> step_;  // what plan_ looks at, if it was made of one step
  Plan plan_;
};

/// The call as an awaitable; see DecideAwaitable.
[[nodiscard]] inline DecideAwaitable awaitable_decide(Store& store, const Plan& plan) {
  return {store, plan};
}
[[nodiscard]] inline DecideAwaitable awaitable_decide(Store& store, const Step& step) {
  return {store, step};
}

}  // namespace sluice
