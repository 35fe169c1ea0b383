// The blocking, future and co_await forms of Store::execute().
#include "sluice/decide.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>

#include "sluice/detail/blocked_call.hpp"
#include "src/util/semaphore.hpp"

namespace sluice {
namespace {

/// The calls of one blocked thread that other threads complete. A call that completes on the
/// waiting thread itself needs no atomic operation, and is not counted here.
class Group {
 public:
  Group() noexcept {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {}

  /// Only the last arrival touches the object after its own count, and the waiter waits for that
  /// one.
  void arrive() noexcept {
    if (missing_.fetch_add(1, std::memory_order_acq_rel) == -1) all_here_.post();
  }

  /// Sleeps and is woken at most once, however many calls it waits for.
  void wait_for(std::ptrdiff_t calls) noexcept {
    std::construct_at(&all_here_);
    if (missing_.fetch_sub(calls, std::memory_order_acq_rel) != calls) all_here_.wait();
    std::destroy_at(&all_here_);
  }

 private:
  std::atomic<std::ptrdiff_t> missing_{0};  // arrivals minus calls waited for
  union {
    detail::Semaphore all_here_;  // constructed while the owner waits
  };
};

struct Call : detail::BlockedCall {
  Group* group;
  std::span<Decision> each;
  const Store* store = nullptr;  // null: no reason is wanted
  std::shared_ptr<const std::string> reason{};

  /// The store may be destroyed as soon as the caller continues.
  void ask_why() noexcept {
    if (store != nullptr) reason = detail::reason_of(*store, *error);
  }

  [[nodiscard]] Completion completion() noexcept {
    return each.empty() ? BlockedCall::completion()
                        : Completion(&Call::deliver_each, static_cast<BlockedCall*>(this));
  }

 private:
  static void deliver_each(void* self, const Outcome& outcome) noexcept {
    const Call& call = *static_cast<Call*>(static_cast<BlockedCall*>(self));
    std::copy(outcome.steps.begin(), outcome.steps.end(), call.each.begin());
    deliver(self, outcome);
  }
};

Decision ask(Store& store, const Plan& plan, std::error_code& error, std::span<Decision> each,
             std::span<Word> output) noexcept {
  Decision result;
  if (!store.may_block()) [[unlikely]] {
    error = Errc::would_deadlock;
    return result;
  }
  Group group;
  Call call{{&result, &error, output}, &group, each, &store};
  store.execute(plan, call.completion());
  if (!call.answered) [[unlikely]] {
    group.wait_for(1);
  }
  if (error) [[unlikely]] {
    detail::note_reason(error, std::move(call.reason), result);
  }
  return result;
}

}  // namespace

void detail::BlockedCall::arrive() noexcept { static_cast<Call*>(this)->group->arrive(); }

void detail::BlockedCall::deliver(void* self, const Outcome& outcome) noexcept {
  auto& blocked = *static_cast<BlockedCall*>(self);
  *blocked.error = outcome.error;
  *blocked.decision = outcome.decision;
  if (!blocked.output.empty()) {
    std::copy(outcome.output.begin(), outcome.output.end(), blocked.output.begin());
  }
  if (outcome.error) static_cast<Call&>(blocked).ask_why();
  if (blocked.thread == this_thread()) {
    blocked.answered = true;
  } else {
    blocked.arrive();
  }
}

Decision decide(Store& store, const Plan& plan, std::error_code& error) noexcept {
  return decide(store, plan, error, {}, {});
}

Decision Store::decide_one(const Step& step, std::error_code& error) noexcept {
  return ask(*this, step, error, {}, {});
}

Decision decide(Store& store, const Plan& plan, std::error_code& error, std::span<Decision> each,
                std::span<Word> output) noexcept {
  if (const PlanFault fault = detail::foreign_fault(store, plan); fault.error) [[unlikely]] {
    error = fault.error;
    Decision result;
    result.step = fault.step;
    return result;
  }
  return ask(store, plan, error, each, output);
}

Decision detail::decide_own(Store& store, const Plan& plan, std::error_code& error,
                            std::span<Decision> each, std::span<Word> output) noexcept {
  return ask(store, plan, error, each, output);
}

Decision decide(Store& store, const Plan& plan) {
  constexpr detail::CallName call{"sluice", "decide"};
  if (const PlanFault fault = detail::foreign_fault(store, plan); fault.error) {
    throw detail::failed_call(call, fault.error, plan, fault.step);
  }
  return detail::decide_as(call, store, plan);
}

Decision decide(Store& store, const Step& step) {
  constexpr detail::CallName call{"sluice", "decide"};
  if (detail::is_foreign(store, step)) {
    throw detail::failed_call(call, detail::foreign_error(store), step);
  }
  return detail::decide_as(call, store, step);
}

Decision detail::decide_as(const CallName& call, Store& store, const Plan& plan) {
  std::error_code error;
  const Decision decision = decide_own(store, plan, error);
  if (error) throw failed_call(call, error, plan, decision.step);
  return decision;
}

Decision detail::decide_as(const CallName& call, Store& store, const Step& step) {
  std::error_code error;
  const Decision decision = decide_own(store, step, error);
  if (error) throw failed_call(call, error, step);
  return decision;
}

namespace {

/// Batches are executed in parts of this size, so that nothing is allocated.
constexpr std::size_t run_length = 128;

void decide_run(Store& store, std::span<const Plan> plans, std::span<Decision> results,
                std::span<std::error_code> errors) noexcept {
  Group group;
  alignas(Call) std::array<std::byte, sizeof(Call) * run_length> call_storage;
  auto* calls = reinterpret_cast<Call*>(call_storage.data());
  alignas(Completion) std::array<std::byte, sizeof(Completion) * run_length> storage;
  auto* done = reinterpret_cast<Completion*>(storage.data());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    results[i] = Decision{};
    std::construct_at(calls + i, Call{{&results[i], &errors[i]}, &group, {}});
    std::construct_at(done + i, calls[i].completion());
  }
  store.execute_batch(plans, {done, plans.size()});
  std::destroy_n(done, plans.size());
  const auto answered =
      std::count_if(calls, calls + plans.size(), [](const Call& call) { return call.answered; });
  const std::ptrdiff_t elsewhere = std::ssize(plans) - answered;
  if (elsewhere > 0) group.wait_for(elsewhere);
}

}  // namespace

void decide_batch(Store& store, std::span<const Plan> plans, std::span<Decision> results,
                  std::span<std::error_code> errors) noexcept {
  if (!store.may_block()) {
    std::fill(errors.begin(), errors.end(), make_error_code(Errc::would_deadlock));
    return;
  }
  while (!plans.empty()) {
    const auto is_own = [&](const Plan& plan) { return !detail::foreign_fault(store, plan).error; };
    const auto end = std::find_if_not(plans.begin(), plans.end(), is_own);
    std::size_t run = std::min(static_cast<std::size_t>(end - plans.begin()), run_length);
    if (run == 0) {
      results.front() = decide(store, plans.front(), errors.front());
      run = 1;
    } else {
      decide_run(store, plans.first(run), results.first(run), errors.first(run));
    }
    plans = plans.subspan(run);
    results = results.subspan(run);
    errors = errors.subspan(run);
  }
}

std::future<Decision> future_decide(Store& store, const Plan& plan) {
  return detail::future_decide_as({"sluice", "future_decide"}, store, plan);
}

std::future<Decision> detail::future_decide_as(const CallName& call, Store& store,
                                               const Plan& plan) {
  auto [done, future] = promised(
      [call, &store, asked = AskedPlan(plan)](std::error_code error, const Decision& decision) {
        note_reason(error, reason_of(store, error), decision);
        return failed_call(call, error, asked, decision.step);
      });
  execute_own(store, plan, std::move(done));
  return std::move(future);
}

namespace detail {

void Awaited::complete(void* self, const Outcome& outcome) noexcept {
  auto& call = *static_cast<Awaited*>(self);
  call.answer_ = {outcome.error, outcome.decision};
  // Acquire: `waiter_` was stored before the coroutine arrived. Release: publishes the answer.
  if (call.met_.exchange(true, std::memory_order_acq_rel)) call.waiter_.resume();
}

bool Awaited::goes_to_sleep() noexcept {
  // If the answer has come already, continue without suspending.
  return !met_.exchange(true, std::memory_order_acq_rel);
}

}  // namespace detail
DecideAwaitable::DecideAwaitable(Store& store, const Plan& plan) : store_(store), plan_(plan) {}

DecideAwaitable::DecideAwaitable(Store& store, const Step& step)
    : store_(store), step_(step), plan_(*step_) {}

bool DecideAwaitable::await_suspend(std::coroutine_handle<> waiter) noexcept {
  return suspend(waiter,
                 [this](Completion done) { detail::execute_own(store_, plan_, std::move(done)); });
}

}  // namespace sluice
