// async_decide() and async_execute(): a plan as a Boost.Asio operation: any completion token, the
// handler's associated executor and allocator, per-operation cancellation. Header only; needs Boost
// 1.81.
#pragma once

#include <boost/asio/deferred.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "sluice/asio/detail/pending_call.hpp"
#include "sluice/extend/owned_plan.hpp"
#include "sluice/owned_outcome.hpp"
#include "sluice/store.hpp"

namespace sluice::asio {

/// void(boost::system::error_code, Decision). The error has the value and the category of Errc.
using DecideSignature = void(boost::system::error_code, Decision);

/// void(boost::system::error_code, OwnedOutcome). The error has the value and the category of Errc.
using ExecuteSignature = void(boost::system::error_code, OwnedOutcome);

namespace detail {

/// Asks for one plan; see sluice/detail/verb.hpp. `Answer` is made of the steps, and receives the
/// outcome.
template <class Answer>
class PlanVerb {
 public:
  using Result = typename Answer::Result;

  PlanVerb(Store& store, const Plan& plan) : store_(&store), plan_(plan), answer_(plan.steps()) {}

  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] std::optional<Plan> next() {
    if (plan_) {
      if (const auto fault = sluice::detail::foreign_fault(*store_, *plan_); fault.error) {
        plan_.reset();
        hear(Outcome{fault.error, Decision{.step = fault.step}, {}, {}});
      }
    }
    return std::exchange(plan_, std::nullopt);
  }
  void hear(const Outcome& outcome) noexcept {
    error_ = outcome.error;
    answer_.hear(outcome);
  }
  [[nodiscard]] Result take(std::error_code& error) noexcept {
    error = error_;
    return std::move(answer_.result);
  }

 private:
  Store* store_;
  std::optional<Plan> plan_;
  std::error_code error_;
  Answer answer_;
};

struct JustDecision {
  using Result = Decision;
  explicit JustDecision(std::span<const Step> /*steps*/) noexcept {}
  void hear(const Outcome& outcome) noexcept { result = outcome.decision; }
  Decision result;
};
struct WholeOutcome {
  using Result = OwnedOutcome;
  explicit WholeOutcome(std::span<const Step> steps) : result(steps) {}
  void hear(const Outcome& outcome) noexcept { result.assign(outcome); }
  OwnedOutcome result;
};

/// A plan that a call asks for, with copies of its keys. It can be copied, because clang 14 does
/// not compile a deferred operation that cannot.
template <class Answer>
struct AskedPlan {
  AskedPlan(Store& asked, const Plan& given)
      : store(&asked), plan(std::make_shared<const OwnedPlan>(given)) {}
  Store* store;
  std::shared_ptr<const OwnedPlan> plan;
  [[nodiscard]] auto verb() const { return PlanVerb<Answer>(*store, plan->view()); }
};

}  // namespace detail

/// Executes a plan; the asynchronous form of decide().
///
/// Completion signature: `void(boost::system::error_code, Decision)`. With use_awaitable, `Decision
/// d = co_await async_decide(store, plan, use_awaitable)` throws boost::system::system_error if the
/// call failed. Without a token, the operation is deferred: it starts when it is awaited.
///
/// Per-operation cancellation: all types, as Plan::cancelled_by(): a request that was not sent
/// fails with Errc::cancelled, one that was sent with Errc::unknown. Stores without I/O answer
/// before they can be cancelled.
///
/// Lifetimes: the plan and its keys are copied before this returns; in a co_await expression g++ 12
/// does not compile braced steps: put them into an array first. The store and the handler's
/// execution context must live until the completion. The handler is posted to its associated
/// executor, on which work is tracked. A context that is destroyed before it runs the handler
/// destroys it, with the result.
template <class CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_decide(Store& store, const Plan& plan, CompletionToken&& token = {}) {
  return detail::initiate(detail::AskedPlan<detail::JustDecision>(store, plan),
                          std::forward<CompletionToken>(token));
}

/// Executes a plan, and completes with its whole outcome: the decision on each step and the output
/// words. The asynchronous form of Store::execute(); otherwise as async_decide().
template <class CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_execute(Store& store, const Plan& plan, CompletionToken&& token = {}) {
  return detail::initiate(detail::AskedPlan<detail::WholeOutcome>(store, plan),
                          std::forward<CompletionToken>(token));
}

}  // namespace sluice::asio
