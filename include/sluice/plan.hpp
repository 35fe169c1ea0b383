// Plan: one or more steps that a store decides together.
#pragma once

#include <array>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>

#include "sluice/extend/verdict.hpp"
#include "sluice/key.hpp"
#include "sluice/rng.hpp"
#include "sluice/stop_token.hpp"

namespace sluice {

class Store;
struct Binding;    // sluice/extend/binding.hpp
struct Operation;  // sluice/extend/operation.hpp

namespace detail {
/// A key as a limiter uses it: with its name, and its store.
struct LimiterKey : Key {
  LimiterKey(const Key& key, const Store& limiter_store) noexcept
      : Key(key), store(&limiter_store) {}
  /// With this name, if it has none of its own, and this unit. One copy of the key: a second one
  /// would load words that the first has just stored, and wait for them.
  LimiterKey(const Key& key, TextArg name, TextArg unit, const Store& limiter_store) noexcept
      : LimiterKey(key, limiter_store) {
    set_default_name(name);
    set_unit(unit);
  }
  const Store* store;
};
}  // namespace detail

/// One operation on one key, as limiters make it. A view: the key's bytes, the limiter and the
/// binding must live until Store::execute() has returned.
struct Step {
  const Operation* operation;
  Key key;
  Arguments args;
  Binding* binding;  ///< of the same key, or null
  /// Further arguments, for operations that take them; they live as long as the limiter.
  std::span<const Word> table;
  /// The store of the limiter that made the step, on which decide() and its other forms insist;
  /// null: any. Stores ignore it: a decorator passes a step on to another store.
  const Store* store = nullptr;

  /// A constructor, because compilers first zero the whole of a partly initialised aggregate.
  Step(const Operation* step_operation, const Key& step_key, const Arguments& step_args,
       Binding* step_binding = nullptr, std::span<const Word> step_table = {}) noexcept
      : operation(step_operation),
        key(step_key),
        args(step_args),
        binding(step_binding),
        table(step_table) {}
  Step(const Operation* step_operation, const detail::LimiterKey& step_key,
       const Arguments& step_args, Binding* step_binding = nullptr,
       std::span<const Word> step_table = {}) noexcept
      : operation(step_operation),
        key(step_key),
        args(step_args),
        binding(step_binding),
        table(step_table),
        store(step_key.store) {}
};

/// The 128-bit id of one request: a retry under the same id after a lost answer charges only once.
struct RequestId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  [[nodiscard]] static RequestId draw(Rng& rng);
  friend bool operator==(const RequestId&, const RequestId&) = default;
};

/// How long a store keeps the ids of admitted plans, by its own clock.
inline constexpr Span id_kept_for = std::chrono::minutes{10};

/// A container of steps. Naming the two types that are no such container is quicker to compile than
/// having their ranges looked for.
template <class T>
concept StepRange = !std::same_as<T, Step> && !std::same_as<T, class Plan> &&
                    std::constructible_from<std::span<const Step>, const T&>;

/// Steps that a store decides at one instant, all or nothing. A view, to be passed on immediately:
///
///     decide(store, {per_user.acquire_step("alice"), everyone.acquire_step("all")})
///     decide(store, Plan(steps).within(20ms))
///
/// In a co_await expression g++ 12 does not compile a braced list: put the steps into a std::array
/// first. REQUIRES: 1 to max_steps steps, no two with the same key; on a Redis cluster, one tag.
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

  /// The timeout of the call, from execute() on; after it, the call fails with Errc::timed_out. A
  /// timeout of zero or less has passed already. It is real time, also for a store with a virtual
  /// clock; stores without I/O ignore it.
  [[nodiscard]] Plan within(Span timeout) const {
    Plan plan = *this;
    plan.timeout_ = timeout > Span{0} ? timeout : none_left;
    return plan;
  }

  /// A stop request fails the call with Errc::cancelled if nothing can have been executed, else
  /// with Errc::unknown. Stores without I/O ignore it.
  [[nodiscard]] Plan cancelled_by(StopToken stop) const {
    Plan plan = *this;
    plan.stop_ = std::move(stop);
    return plan;
  }

  /// Charges at most once, however often the plan is executed under this id. Once a plan with the
  /// id was admitted, the store repeats that answer for id_kept_for, without evaluating the steps
  /// or changing anything. Refusals are not recorded. The id is local to the tag of the first step.
  /// It identifies one request: a plan of other keys or operations under the same id fails with
  /// Errc::id_reused. The arguments are not compared and may differ, such as a shorter wait. In
  /// Redis the record is one more key, and a plan of one step costs about as much as one of two.
  [[nodiscard]] Plan idempotent(const RequestId& id) const {
    Plan plan = *this;
    plan.id_ = id;
    return plan;
  }

  /// The question of a call that waits: a refusal is not the end of it. Observers are told so;
  /// stores ignore it.
  [[nodiscard]] Plan of_wait() const {
    Plan plan = *this;
    plan.is_of_wait_ = true;
    return plan;
  }

  /// Other steps with the same timeout, stop token and id.
  [[nodiscard]] Plan with_steps(std::span<const Step> steps) const {
    Plan plan = *this;
    plan.steps_ = steps;
    return plan;
  }

  [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
  /// Zero: the store's default. Negative: it has passed.
  [[nodiscard]] Span timeout() const noexcept { return timeout_; }
  [[nodiscard]] const StopToken& stop() const noexcept { return stop_; }
  [[nodiscard]] const std::optional<RequestId>& id() const noexcept { return id_; }
  [[nodiscard]] bool is_of_wait() const noexcept { return is_of_wait_; }

 private:
  static constexpr Span none_left{-1};

  std::span<const Step> steps_;
  Span timeout_{0};
  StopToken stop_{};
  std::optional<RequestId> id_{};
  bool is_of_wait_ = false;
};

/// The name of the key that records an id; its tag is that of the plan's first step.
[[nodiscard]] std::array<char, 37> record_name(const RequestId& id) noexcept;

/// An error in a plan that can be found without state: its size, its keys, two steps on one key or
/// a step on the key of the id, a cost that can never be admitted. `step` is the step at fault.
struct PlanFault {
  std::error_code error;
  std::uint16_t step = 0;
};

/// The first fault of a plan, or no error. For implementations of stores. O(steps^2), no
/// allocation.
[[nodiscard]] PlanFault find_fault(const Plan& plan) noexcept;

}  // namespace sluice
