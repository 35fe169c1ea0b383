// Store: the interface to the state of all keys and to the clock that rules see. Stores decide
// plans.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "sluice/clock.hpp"
#include "sluice/decision.hpp"
#include "sluice/plan.hpp"

namespace sluice {

class Observer;      // sluice/observer.hpp
class Subscription;  // sluice/extend/subscription.hpp

namespace detail {
/// An address that differs from thread to thread.
struct BlockedCall;
}  // namespace detail

/// The result of one call. If `error` is set, only `decision.step`, the step at fault, is
/// meaningful, and after Errc::wrong_kind also `decision.part`.
struct Outcome {
  std::error_code error;
  Decision decision;  ///< on the plan as a whole
  /// The decision on each step, in the order of the plan; valid only while the completion runs. In
  /// a refused plan, a step that would have been admitted reports what would have remained. Empty
  /// on error.
  std::span<const Decision> steps;
  /// The output words of the operations (Operation::output), one step after the other; see
  /// output_of(). Valid as long as `steps`.
  std::span<const Word> output;
};

/// The callback of one call: it receives the outcome exactly once. Two words, no allocation,
/// move-only. Destroyed before that, it delivers Errc::shut_down, so that no caller waits for ever.
class Completion {
 public:
  using Function = void (*)(void* context, const Outcome& outcome) noexcept;

  Completion(Function function, void* context) noexcept : function_(function), context_(context) {}
  Completion(Completion&& other) noexcept
      : function_(std::exchange(other.function_, nullptr)), context_(other.context_) {}
  Completion& operator=(Completion&& other) noexcept {
    std::swap(function_, other.function_);
    std::swap(context_, other.context_);
    return *this;
  }
  ~Completion() {
    if (function_ != nullptr) fail(Errc::shut_down);
  }

  /// True until the outcome was delivered or the object moved from.
  [[nodiscard]] explicit operator bool() const noexcept { return function_ != nullptr; }

  /// Delivers the outcome. REQUIRES: not delivered yet.
  void operator()(const Outcome& outcome) noexcept {
    std::exchange(function_, nullptr)(context_, outcome);
  }

  /// Delivers an error at `step`. `part` is Decision::part after Errc::wrong_kind.
  void fail(std::error_code error, std::uint16_t step = 0, std::uint16_t part = 0) noexcept;

 private:
  friend struct detail::BlockedCall;

  Function function_;
  void* context_;
};

/// A part of a store that fails apart from the others, such as a node of a cluster.
struct StorePart {
  /// From 0. A CircuitBreaker distinguishes CircuitBreaker::max_parts of them.
  unsigned index = 0;
  /// How many times the part has become reachable; never decreases for an index. 0 if the store
  /// does not know.
  std::uint64_t comebacks = 0;
};

/// The interface between limiters and the state of their keys. Thread-safe: any member may be
/// called from any thread.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  /// Pending calls complete with an error before the destructor returns.
  virtual ~Store() = default;

  /// Decides every step of the plan at one instant of the store's clock; if any step refuses,
  /// nothing is written. `done` is called exactly once: before execute() returns, or later on a
  /// thread of the store. The plan is read before execute() returns. Never throws: failures are
  /// errors of the outcome.
  virtual void execute(const Plan& plan, Completion done) noexcept = 0;

  /// Decides one step and blocks until it is answered, as decide() does with a plan of it: on
  /// failure `error` is set and the decision is not allowed. Never throws. By default it calls
  /// execute(); a store that answers at once may do without plan and completion.
  [[nodiscard]] virtual Decision decide_one(const Step& step, std::error_code& error) noexcept;

  /// Executes independent plans; done[i] receives the outcome of plans[i]. A store may read its
  /// clock once for all of them. By default, it calls execute() for each in turn. REQUIRES: both
  /// spans have the same size.
  virtual void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept;

  /// Executes the plans in order until one is admitted: those behind it are not executed, and fail
  /// with Errc::cancelled, or as they would anyhow. One that fails does not stop the others.
  /// done[i] receives the outcome of plans[i], in this order. By default, it calls execute() for
  /// one after the other: each costs a round trip. REQUIRES: both spans have the same size.
  virtual void execute_first(std::span<const Plan> plans, std::span<Completion> done) noexcept;

  /// The clock of this store in this process, on which waits are measured.
  [[nodiscard]] virtual Clock& clock() noexcept = 0;

  /// True if Decision::at of an operation with Operation::decide is a reading of clock() between
  /// the call and its answer, so that callers need not read the clock themselves. (For a repeated
  /// request id: between the first call and its answer.) By default false: the time is that of a
  /// server, or of another store behind this one.
  [[nodiscard]] virtual bool stamps_by_clock() const noexcept { return false; }

  /// True if callers of several processes who wait here are served in one order; see
  /// WaitQueueOptions::across_processes. By default, unless the store reads the clock of this
  /// process and so belongs to it.
  [[nodiscard]] virtual bool keeps_order() const noexcept { return !stamps_by_clock(); }

  /// Prepares `binding` for a frequently used key. By default it stays empty.
  virtual void bind(const Key& key, Binding& binding) noexcept;

  /// Notifies the subscribers of the key in all processes. Best effort: a notification may be lost
  /// without an error, so that progress must not depend on it. Does not wait for a round trip. By
  /// default it does nothing.
  virtual void notify(const Key& key) noexcept;

  /// Calls `seen` for each notify() of the key that arrives, until the subscription is destroyed.
  /// `seen` runs on any thread, also inside notify() on the caller's own, while no lock of the
  /// store is held; it must not throw or block, and may use the store. A call may still begin or
  /// run while another thread destroys the subscription, so that `seen` must own what it uses
  /// (std::weak_ptr). Null: this store has no notifications, or no memory.
  [[nodiscard]] virtual std::unique_ptr<Subscription> subscribe(
      const Key& key, std::function<void()> seen) noexcept;

  /// Details of why a call has just failed with `error`, such as the address and the server's own
  /// message, never a secret. Exceptions quote them. Called before the completion of that call
  /// returns, on any thread. Null, as by default: there are no details.
  [[nodiscard]] virtual std::shared_ptr<const std::string> reason_of(
      const std::error_code& error) const noexcept;

  /// The part of this store that decides plans whose first step has this key, which may be invalid.
  /// A FallbackStore asks before each call, and fails over part by part. By default there is one
  /// part, without comebacks.
  [[nodiscard]] virtual StorePart part_of(const Key& key) const noexcept;

  /// False on a thread that must not block until this store answers, such as its own I/O thread.
  [[nodiscard]] virtual bool may_block() const noexcept { return true; }

  /// Who is told of waits, leases and retries on this store; null, as by default: nobody. See
  /// ObservedStore.
  [[nodiscard]] virtual Observer* observer() const noexcept { return nullptr; }

  /// A view, for objects that may outlive the store, of whether it has ended.
  [[nodiscard]] detail::Life::View life() const noexcept { return life_.view(); }

 protected:
  /// Marks the end of the store. A destructor that fails pending calls runs it first, so that the
  /// callers do not call the store again.
  void end() noexcept { life_.end(); }

 private:
  detail::Life life_;
};

namespace detail {
/// Fails every call with Errc::shut_down; it stands for stores that have ended. Its clock is a
/// SystemClock. Never destroyed.
[[nodiscard]] Store& ended_store() noexcept;

/// The error of a call that gives `store` a step of a limiter on another store: Errc::other_store,
/// or Errc::shut_down if the limiter's own has ended.
[[nodiscard]] inline bool is_foreign(const Store& store, const Step& step) noexcept {
  return step.store != nullptr && step.store != &store;
}
[[nodiscard]] std::error_code foreign_error(const Store& store) noexcept;
/// The same for the first such step of a plan, or no error. All forms of decide() look; stores do
/// not, because a decorator passes steps on to another store.
[[nodiscard]] PlanFault foreign_fault(const Store& store, const Plan& plan) noexcept;
/// Store::execute(), unless there is such a fault.
void execute_own(Store& store, const Plan& plan, Completion done) noexcept;
}  // namespace detail

/// A new store. A std::unique_ptr, which moves into limiters and into smart pointers of any kind,
/// but is not dereferenced while it is a temporary: that store would end with the expression.
///
///     const auto store = make_memory_store();
///     TokenBucket bucket(*store, "api", quota);
///     TokenBucket other(make_memory_store(), "api", quota);
///     TokenBucket wrong(*make_memory_store(), "api", quota);  // does not compile
template <class S>
class NewStore : public std::unique_ptr<S> {
 public:
  NewStore() = default;
  NewStore(NewStore&&) noexcept = default;
  NewStore& operator=(NewStore&&) noexcept = default;
  NewStore(std::unique_ptr<S> store) noexcept  // NOLINT(google-explicit-constructor): it is one
      : std::unique_ptr<S>(std::move(store)) {}

  [[nodiscard]] S& operator*() const& noexcept { return *this->get(); }
  [[nodiscard]] S* operator->() const& noexcept { return this->get(); }
  S& operator*() const&& = delete;   // this store would end at once: pass on the pointer itself,
  S* operator->() const&& = delete;  // or keep it in a variable
};

/// The number of output words of a plan's steps.
[[nodiscard]] std::size_t output_count(std::span<const Step> steps) noexcept;

/// The output words of the step at `index`, out of those of a whole plan. REQUIRES: `output` is
/// that of an outcome of these steps without an error.
[[nodiscard]] std::span<const Word> output_of(std::span<const Word> output,
                                              std::span<const Step> steps,
                                              std::size_t index) noexcept;

}  // namespace sluice
