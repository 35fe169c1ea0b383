// A Store decides plans. It owns the state of every key and the clock that the rules see.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "sluice/clock.hpp"
#include "sluice/decision.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/plan.hpp"

namespace sluice {

namespace detail {
struct BlockedCall;
}

/// How a call ended. If `error` is set nothing else counts but `decision.step`, the step at fault,
/// and of Errc::wrong_kind `decision.part`.
struct Outcome {
  std::error_code error;
  Decision decision;  ///< of the plan as a whole
  /// Of each step, in the order of the plan; lives only while the completion runs. In a refused
  /// plan a step that would have admitted reports what would have remained. Empty on error.
  std::span<const Decision> steps;
  /// What the steps' operations tell beyond a decision (Operation::output), one step after
  /// the other; see output_of(). Lives as long as `steps`.
  std::span<const Word> output;
};

/// Receives the outcome of one call, exactly once. Two words, no allocation. Destroyed unused, it
/// delivers Errc::shut_down, so that a caller never waits for ever. Move-only.
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

  /// Delivers an error about `step`. `part`: what Decision::part says of Errc::wrong_kind.
  void fail(std::error_code error, std::uint16_t step = 0, std::uint16_t part = 0) noexcept;

 private:
  friend struct detail::BlockedCall;

  Function function_;
  void* context_;
};

/// What limiters are written against. Thread-safe: any member may be called from any thread.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  /// Calls still under way complete with an error before the destructor returns.
  virtual ~Store() = default;

  /// Runs every step of the plan at one instant of the store's clock; if any step refuses, nothing
  /// is written. `done` is called exactly once: before execute() returns, or later on a thread of
  /// the store. The plan is read before execute() returns. Never throws: what goes wrong is the
  /// outcome's error.
  virtual void execute(const Plan& plan, Completion done) noexcept = 0;

  /// Runs plans that do not depend on each other; the i-th of `done` answers the i-th plan. A store
  /// may share one reading of its clock among them. By default, execute() of each in turn.
  /// REQUIRES: both spans of the same size.
  virtual void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept;

  /// The clock that decisions are made on, and waiting is to be measured on.
  [[nodiscard]] virtual Clock& clock() noexcept = 0;

  /// True if the answer of an operation that has Operation::decide carries in Decision::at a
  /// reading of clock() from between the call and the answer, so that callers need none of their
  /// own; for an id that was admitted before, from between that call and its answer. By default
  /// false: it is a server's, or of a store behind this one.
  [[nodiscard]] virtual bool stamps_by_clock() const noexcept { return false; }

  /// Prepares `binding` for a key that will be used often. By default it stays empty.
  virtual void bind(const Key& key, Binding& binding) noexcept;

  /// Tells the subscribers of the key, in whichever process. Best effort: it may be lost and tells
  /// nothing back, so that progress must never depend on it. No round trip is waited for. By
  /// default nobody is told.
  virtual void notify(const Key& key) noexcept;

  /// Has `seen` called for each notify() of the key that arrives, until the subscription is
  /// destroyed. It is called on any thread, also inside of notify() on the caller's own, with no
  /// lock of the store held; it must not throw nor block, and may use the store. A call that has
  /// begun, or is just about to, may still be made while the subscription is destroyed elsewhere,
  /// so `seen` must own what it uses (std::weak_ptr). Null: this store tells nobody, or has no
  /// memory.
  [[nodiscard]] virtual std::unique_ptr<Subscription> subscribe(
      const Key& key, std::function<void()> seen) noexcept;

  /// Why a call has just ended with `error`, beyond what the error's own text says: where and in
  /// whose words, never a secret. Exceptions quote it. It is asked before the completion of that
  /// call returns, on any thread. Null, as by default: nothing more is known.
  [[nodiscard]] virtual std::shared_ptr<const std::string> reason_of(
      const std::error_code& error) const noexcept;

  /// False on a thread that must not block until this store answers: its own I/O thread.
  [[nodiscard]] virtual bool may_block() const noexcept { return true; }

  /// For those who may outlive it: whether it has ended.
  [[nodiscard]] detail::Life::View life() const noexcept { return life_.view(); }

 protected:
  /// For a store that answers calls as it is destroyed: called first, it keeps those who are
  /// answered from asking again.
  void end() noexcept { life_.end(); }

 private:
  detail::Life life_;
};

/// What conclude() must know of a step.
struct AskedStep {
  const Operation* operation = nullptr;
  Word limit = 0;
  std::size_t output = 0;

  AskedStep() = default;
  explicit AskedStep(const Step& step) noexcept
      : operation(step.operation),
        limit(step.args[0]),
        output(output_count(*step.operation, step.table.size())) {}
};

/// Of the output words of a whole plan, those that the step at `index` tells. REQUIRES: the output
/// words of an outcome of these steps that is no error.
[[nodiscard]] std::span<const Word> output_of(std::span<const Word> output,
                                              std::span<const Step> steps,
                                              std::size_t index) noexcept;

/// Delivers the outcome of a plan from the verdicts of its steps, all made at `at`: the first
/// failed step, else the refused step that must be waited for longest, else the step with the
/// least remaining, with the longest wait of all steps (which is zero but for reservations).
/// `output` holds those of each step, one after the other. For those who write
/// stores. REQUIRES: as many asked as verdicts, 1 to Plan::max_steps, and all their output words.
void conclude(std::span<const AskedStep> asked, std::span<const Verdict> verdicts,
              std::span<const Word> output, Time at, Source source, Completion& done) noexcept;

/// The same for steps that are at hand.
void conclude(std::span<const Step> steps, std::span<const Verdict> verdicts,
              std::span<const Word> output, Time at, Source source, Completion& done) noexcept;

}  // namespace sluice
