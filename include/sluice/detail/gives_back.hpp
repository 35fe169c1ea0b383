// How a call that gives something back to a limit wakes who waits for it: a verb around that of the
// call. So all forms of the call wake, and none before the store has done it.
//
// Where processes wait in one line, the request also asks which of them is first. A call that is
// made while nobody waits in this process costs a fence and a load besides.
//
// Threading: as verbs; see sluice/detail/verb.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/detail/verb.hpp"
#include "sluice/limiters/waitable.hpp"
#include "sluice/quota.hpp"

namespace sluice::detail {

/// Wakes the first who waits for what a call has given something back to, in this process or
/// another.
class WakeUp {
 public:
  /// The call gives nothing back, or nobody can wait for the limiter.
  WakeUp() noexcept = default;
  /// The limiter, or another owner of its queues, must live until the call is over.
  explicit WakeUp(const Waitable& limiter) noexcept : waits_(limiter.who_waits_) {}
  explicit WakeUp(WaitQueues* queues) noexcept;
  /// `key` is that of the queue, where the call's first step has another.
  WakeUp(WaitQueues* queues, const Key& key) noexcept : WakeUp(queues) {
    key_ = key;
    is_given_ = true;
  }

  /// The plan of the call; with a last step that asks which process is first in the wait line, if
  /// there can be others. It views this object. REQUIRES: the plan's steps live until the wake-up.
  void ask_with(std::optional<Plan>& plan, const Store& store) noexcept {
    if (!is_given_) key_ = plan->steps().front().key;  // each plan may view other bytes
    line_.reset();
    if (waits_ != nullptr && waits_->across_processes && store.keeps_order()) ask_others(plan);
  }
  /// The plan has that step.
  [[nodiscard]] bool asks_others() const noexcept { return line_ != nullptr; }
  /// True if the wait line is what has failed: the plan of the call alone, once.
  [[nodiscard]] bool is_to_blame(const Outcome& outcome) const noexcept {
    return line_ && outcome.error && outcome.decision.step == line_->plan.steps().size();
  }
  [[nodiscard]] Plan ask_alone() noexcept;
  /// What the outcome says of the call's own steps, of which the last decides. REQUIRES:
  /// asks_others().
  [[nodiscard]] Outcome own(const Outcome& outcome) const noexcept;

  /// Called after the store has given something back, and has `left` that.
  void wake_here(const Decision& left) const noexcept {
    if (waits_ == nullptr) return;
    // Either this sees the waiter, which has entered its queue, passed such a fence in
    // WaitQueues::take_queue() and then asked the store; or what it asked was decided after what
    // this thread did there, and it needs no wake-up.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // Relaxed: a mutex guards what it leads to.
    const auto wake = waits_->wake.load(std::memory_order_relaxed);
    if (wake != nullptr) wake(*waits_, *key_, left);
  }
  /// The same; `outcome`, of which `own` is the call's part, says which process is first. REQUIRES:
  /// asks_others().
  void wake_first(Store& store, const Outcome& outcome, const Outcome& own) const noexcept;

 private:
  /// The wait line of the key, and the plan that asks for it.
  struct Line {
    Line(const Plan& asked, const Key& key);

    std::string tag;
    std::string name;
    Plan plan;                // of the call
    std::vector<Step> steps;  // ... and the one that asks for the line
    std::size_t own_output = 0;
  };

  void ask_others(std::optional<Plan>& plan) noexcept;

  WhoWaits* waits_ = nullptr;
  std::optional<Key> key_;  // of the queue
  bool is_given_ = false;   // ... and not of the call's first step
  std::unique_ptr<Line> line_;
};

/// Whether a call has given something back, by the outcome of its step.
struct WhenAllowed {
  bool operator()(const Outcome& outcome) const noexcept { return outcome.decision.allowed; }
};
/// The first output word, if there is one, is how much.
struct WhenUnits {
  bool operator()(const Outcome& outcome) const noexcept {
    return outcome.output.empty() ? outcome.decision.allowed : outcome.output[0] > 0;
  }
};
/// The second output word says so.
struct WhenChanged {
  bool operator()(const Outcome& outcome) const noexcept { return word_of(outcome, 1) != 0; }
};

/// The verb of a call that may give something back. `When` hears the outcomes of its plans.
template <class Verb, class When>
class GivesBack {
 public:
  using Result = typename Verb::Result;

  /// `make()` makes the verb. If that has gives_back(), it says whether the call may wake anybody.
  template <class Make>
  GivesBack(WakeUp wake_up, Make make) : verb_(make()), wake_up_(std::move(wake_up)) {
    if constexpr (requires { verb_.gives_back(); }) {
      if (!verb_.gives_back()) wake_up_ = {};
    }
  }

  [[nodiscard]] Store& store() const noexcept { return verb_.store(); }
  [[nodiscard]] std::optional<Plan> next() {
    if (std::exchange(is_alone_, false)) return wake_up_.ask_alone();
    auto plan = verb_.next();
    if (plan) wake_up_.ask_with(plan, store());
    return plan;
  }
  void hear(const Outcome& outcome) noexcept {
    if (wake_up_.asks_others()) return hear_all(outcome);
    verb_.hear(outcome);
    if (!outcome.error && When{}(outcome)) wake_up_.wake_here(outcome.decision);
  }
  [[nodiscard]] Result take(std::error_code& error) { return verb_.take(error); }
  void commit() noexcept { detail::commit(verb_); }
  /// For exceptions, as that of the verb.
  [[nodiscard]] auto failed_step() const noexcept requires requires(const Verb& verb) {
    verb.failed_step();
  }
  { return verb_.failed_step(); }

 private:
  void hear_all(const Outcome& outcome) noexcept {
    is_alone_ = wake_up_.is_to_blame(outcome);
    if (is_alone_) return;
    const Outcome own = wake_up_.own(outcome);
    verb_.hear(own);
    if (!own.error && When{}(own)) wake_up_.wake_first(store(), outcome, own);
  }

  Verb verb_;
  WakeUp wake_up_;
  bool is_alone_ = false;
};

/// The verb whose result is the decision on a step that gives something back.
template <class When = WhenAllowed>
using GivesBackDecision = GivesBack<StepVerb<AsDecision>, When>;
template <class When = WhenAllowed>
[[nodiscard]] GivesBackDecision<When> give_back(WakeUp wake_up, Store& store,
                                                const Step& step) noexcept {
  return {std::move(wake_up), [&] { return verb_of(store, step); }};
}

/// The verbs of the calls that most limiters have. `When` is of reward().
template <class When = WhenAllowed>
struct GiveBackVerbs {
  template <class L>
  static auto reward(const L& limiter, const Key& key, Cost amount) noexcept
      -> std::enable_if_t<sizeof(limiter.reward_step(key, amount)) != 0, GivesBackDecision<When>> {
    return give_back<When>(WakeUp(limiter), limiter.store(), limiter.reward_step(key, amount));
  }
  template <class L>
  static auto reset(const L& limiter, const Key& key) noexcept
      -> std::enable_if_t<sizeof(limiter.reset_step(key)) != 0, GivesBackDecision<>> {
    return give_back<>(WakeUp(limiter), limiter.store(), limiter.reset_step(key));
  }
};

}  // namespace sluice::detail
