// What is asked of a store: one or more steps, decided together.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <initializer_list>
#include <span>
#include <stop_token>

#include "sluice/key.hpp"
#include "sluice/operation.hpp"

namespace sluice {

class Store;

/// What a store remembers for a key that is used again and again, so that it need not look the key
/// up. Filled by Store::bind(); belongs to that store. May be used by many threads at once.
struct Binding {
  const Store* owner = nullptr;
  std::array<std::uint64_t, 2> hash{};
  std::atomic<void*> slot{nullptr};
  std::atomic<bool> fine{false};  ///< the cheap clock did not serve the last time

  Binding() = default;
  /// REQUIRES, here and below: neither is in use meanwhile.
  Binding(const Binding& other) noexcept { *this = other; }
  Binding& operator=(const Binding& other) noexcept {
    owner = other.owner;
    hash = other.hash;
    slot.store(other.slot.load(std::memory_order_relaxed), std::memory_order_relaxed);  // see above
    fine.store(other.fine.load(std::memory_order_relaxed), std::memory_order_relaxed);  // see above
    return *this;
  }
  ~Binding() = default;
};

/// One operation on one key. Views: the key's bytes and the binding must live until
/// Store::execute() has returned.
struct Step {
  const Operation* operation;
  Key key;
  Arguments args;
  Binding* binding = nullptr;  ///< of the same key, or null
};

/// Steps that are decided at one instant, all or nothing. A view, to be passed on at once:
///
///     decide(store, {per_user.take("alice"), everyone.take("all")})
///     decide(store, Plan(steps).within(20ms))
///
/// In a co_await, g++ 12 cannot keep a list in braces: name the steps in a std::array first.
/// REQUIRES: 1 to max_steps steps, no two with the same key; on a Redis cluster, one tag.
class Plan {
 public:
  static constexpr std::size_t max_steps = 16;

  // NOLINTBEGIN(google-explicit-constructor): a step is a plan
  Plan(const Step& step) noexcept : steps_(&step, 1) {}
  Plan(std::initializer_list<Step> steps) noexcept : steps_(steps.begin(), steps.size()) {}
  Plan(std::span<const Step> steps) noexcept : steps_(steps) {}
  template <class Steps>
  requires std::constructible_from < std::span<const Step>,
  const Steps& > Plan(const Steps& steps) noexcept : steps_(steps) {}
  // NOLINTEND(google-explicit-constructor)

  /// How long the answer may take, counted from execute(); with nothing left, the call ends in
  /// Errc::timed_out. Real time, also for a store whose clock is virtual; stores without I/O answer
  /// at once.
  [[nodiscard]] Plan within(Span timeout) const {
    Plan plan = *this;
    plan.timeout_ = timeout > Span{0} ? timeout : none_left;
    return plan;
  }

  /// A stop request completes the call with Errc::cancelled if nothing was sent yet, else with
  /// Errc::unknown. Ignored by stores that answer at once.
  [[nodiscard]] Plan cancelled_by(std::stop_token stop) const {
    Plan plan = *this;
    plan.stop_ = std::move(stop);
    return plan;
  }

  /// Other steps under the same conditions.
  [[nodiscard]] Plan with_steps(std::span<const Step> steps) const {
    Plan plan = *this;
    plan.steps_ = steps;
    return plan;
  }

  [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
  /// Zero: the store's own default. Negative: none is left.
  [[nodiscard]] Span timeout() const noexcept { return timeout_; }
  [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }

 private:
  static constexpr Span none_left{-1};

  std::span<const Step> steps_;
  Span timeout_{0};
  std::stop_token stop_{};
};

/// What is wrong with a plan before any state is looked at: its size, its keys, two steps on one
/// key, a cost that can never be admitted. `step` is the step at fault.
struct PlanFault {
  std::error_code error;
  std::uint16_t step = 0;
};

/// No error if the plan may be executed. For those who write stores. O(steps^2), no allocation.
[[nodiscard]] PlanFault find_fault(const Plan& plan) noexcept;

}  // namespace sluice
