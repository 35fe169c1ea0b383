// What is asked of a store: one or more steps, decided together.
#pragma once

#include <array>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>

#include "sluice/extend/binding.hpp"
#include "sluice/extend/operation.hpp"
#include "sluice/key.hpp"
#include "sluice/rng.hpp"
#include "sluice/stop_token.hpp"

namespace sluice {

/// One operation on one key. Views: the key's bytes and the binding must live until
/// Store::execute() has returned.
struct Step {
  const Operation* operation;
  Key key;
  Arguments args;
  Binding* binding;  ///< of the same key, or null
  /// More words of the limiter's own, for operations that take them; lives as long as the limiter.
  std::span<const Word> table;

  /// A constructor, since compilers clear a whole aggregate first that is zero in part.
  Step(const Operation* step_operation, const Key& step_key, const Arguments& step_args,
       Binding* step_binding = nullptr, std::span<const Word> step_table = {}) noexcept
      : operation(step_operation),
        key(step_key),
        args(step_args),
        binding(step_binding),
        table(step_table) {}
};

/// 128 bits that name one request, so that asking again after a lost answer charges once.
struct RequestId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  [[nodiscard]] static RequestId draw(Rng& rng);
  friend bool operator==(const RequestId&, const RequestId&) = default;
};

/// How long a store remembers the ids of the plans that it admitted, by its own clock.
inline constexpr Span id_kept_for = std::chrono::minutes{10};

/// A container of steps. Naming the two types that are no such container is quicker to compile than
/// having their ranges looked for.
template <class T>
concept StepRange = !std::same_as<T, Step> && !std::same_as<T, class Plan> &&
                    std::constructible_from<std::span<const Step>, const T&>;

/// Steps that are decided at one instant, all or nothing. A view, to be passed on at once:
///
///     decide(store, {per_user.acquire_step("alice"), everyone.acquire_step("all")})
///     decide(store, Plan(steps).within(20ms))
///
/// In a co_await, g++ 12 does not compile a list in braces: name the steps in a std::array first.
/// REQUIRES: 1 to max_steps steps, no two with the same key; on a Redis cluster, one tag.
class Plan {
 public:
  static constexpr std::size_t max_steps = 16;

  // NOLINTBEGIN(google-explicit-constructor): a step is a plan
  Plan(const Step& step) noexcept : steps_(&step, 1) {}
  Plan(std::initializer_list<Step> steps) noexcept : steps_(steps.begin(), steps.size()) {}
  Plan(std::span<const Step> steps) noexcept : steps_(steps) {}
  template <StepRange Steps>
  Plan(const Steps& steps) noexcept : steps_(steps) {}
  // NOLINTEND(google-explicit-constructor)

  /// How long the answer may take, counted from execute(); with nothing left, the call ends in
  /// Errc::timed_out. Real time, also for a store whose clock is virtual; stores without I/O answer
  /// at once.
  [[nodiscard]] Plan within(Span timeout) const {
    Plan plan = *this;
    plan.timeout_ = timeout > Span{0} ? timeout : none_left;
    return plan;
  }

  /// A stop request completes the call with Errc::cancelled if nothing can have run, else with
  /// Errc::unknown. Ignored by stores that answer at once.
  [[nodiscard]] Plan cancelled_by(StopToken stop) const {
    Plan plan = *this;
    plan.stop_ = std::move(stop);
    return plan;
  }

  /// Charges at most once, however often it is asked under this id: once a plan with it was
  /// admitted, the store gives the same answer again, without a look at the steps, and changes
  /// nothing, for id_kept_for. Refusals are not remembered. The id belongs to the tag of the first
  /// step. It names one request: a plan of other keys or operations under the same id is
  /// Errc::id_reused. Arguments may differ, a shorter wait above all; they are not looked at.
  /// In Redis it is one more key, and a plan of one step costs about as much as one of two.
  [[nodiscard]] Plan idempotent(const RequestId& id) const {
    Plan plan = *this;
    plan.id_ = id;
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
  [[nodiscard]] const StopToken& stop() const noexcept { return stop_; }
  [[nodiscard]] const std::optional<RequestId>& id() const noexcept { return id_; }

 private:
  static constexpr Span none_left{-1};

  std::span<const Step> steps_;
  Span timeout_{0};
  StopToken stop_{};
  std::optional<RequestId> id_{};
};

/// The name, under the tag of a plan's first step, of the key that remembers an id.
[[nodiscard]] std::array<char, 37> record_name(const RequestId& id) noexcept;

/// What is wrong with a plan before any state is looked at: its size, its keys, two steps on one
/// key or one on that of the plan's id, a cost that can never be admitted. `step` is the step at
/// fault.
struct PlanFault {
  std::error_code error;
  std::uint16_t step = 0;
};

/// No error if the plan may be executed. For those who write stores. O(steps^2), no allocation.
[[nodiscard]] PlanFault find_fault(const Plan& plan) noexcept;

}  // namespace sluice
