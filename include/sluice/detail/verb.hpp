// How the calls of limiters are made: what a call asks the store, and its result. The blocking and
// the asynchronous form of a call drive the same verb.
//
// A verb has these members:
//
//     using Result = ...;                   what the call returns; Done: nothing
//     Store& store();
//     std::optional<Plan> next();           what to ask; it views the verb. None: nothing any more
//     void hear(const Outcome&) noexcept;   the outcome of that plan
//     Result take(std::error_code&);        at the end
//     void commit() noexcept;               optional: updates an object of the caller's
//
// Threading: a verb is used by one thread at a time; hear() may run on a thread of the store, and
// commit() runs where the caller receives the result.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/decide.hpp"
#include "sluice/detail/exceptions.hpp"

namespace sluice::detail {

/// The result of a call that returns nothing.
struct Done {};

/// An output word; 0 if there are fewer, as after an error.
[[nodiscard]] inline Word word_of(const Outcome& outcome, std::size_t index) noexcept {
  return index < outcome.output.size() ? outcome.output[index] : 0;
}

/// The decision itself.
struct AsDecision {
  Decision operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
    return outcome.decision;
  }
};
struct AsDone {
  Done operator()(const Outcome& /*outcome*/, std::error_code& /*error*/) const noexcept {
    return {};
  }
};

/// A verb that asks one step. `make(outcome, error)` makes the result, also of a failure; it may
/// change the error.
template <class Make>
class StepVerb {
 public:
  using Result = std::invoke_result_t<const Make&, const Outcome&, std::error_code&>;

  StepVerb(Store& store, const Step& step, Make make)
      : store_(&store), step_(step), make_(std::move(make)), due_(true) {}
  /// Without a step, the call is over at once with `error` and an empty result.
  StepVerb(Store& store, const std::optional<Step>& step, Make make, std::error_code error = {})
      : store_(&store),
        step_(step),
        make_(std::move(make)),
        due_(step.has_value()),
        error_(error) {}

  /// Plan::idempotent()
  [[nodiscard]] StepVerb idempotent(const RequestId& id) && {
    id_ = id;
    return std::move(*this);
  }
  /// Plan::within()
  [[nodiscard]] StepVerb within(Span timeout) && {
    timeout_ = timeout;
    return std::move(*this);
  }

  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] std::optional<Plan> next() {
    if (!std::exchange(due_, false)) return std::nullopt;
    const Plan plan = timeout_ ? Plan(*step_).within(*timeout_) : Plan(*step_);
    return id_ ? plan.idempotent(*id_) : plan;
  }
  void hear(const Outcome& outcome) noexcept {
    error_ = outcome.error;
    if constexpr (std::is_nothrow_invocable_v<const Make&, const Outcome&, std::error_code&>) {
      result_ = make_(outcome, error_);
    } else {
      std::error_code failed;
      call_within_memory([&] { result_ = make_(outcome, error_); }, failed);
      if (failed) error_ = failed;
    }
    if constexpr (requires { result_.key_mark; }) result_.key_mark = key_mark(step_->key);
  }
  [[nodiscard]] Result take(std::error_code& error) {
    error = error_;
    return std::move(result_);
  }

 private:
  Store* store_;
  std::optional<Step> step_;
  std::optional<RequestId> id_;
  std::optional<Span> timeout_;
  Make make_;
  bool due_;
  std::error_code error_;
  Result result_{};
};

/// The verb whose result is the decision on a step.
[[nodiscard]] inline StepVerb<AsDecision> verb_of(Store& store, const Step& step) {
  return {store, step, AsDecision{}};
}

/// A verb whose result is `make(result, error)` of another verb's.
template <class Verb, class Make>
class MappedVerb {
 public:
  using Result = std::invoke_result_t<const Make&, typename Verb::Result, std::error_code&>;

  MappedVerb(Verb verb, Make make) : verb_(std::move(verb)), make_(std::move(make)) {}

  [[nodiscard]] Store& store() const noexcept { return verb_.store(); }
  [[nodiscard]] std::optional<Plan> next() { return verb_.next(); }
  void hear(const Outcome& outcome) noexcept { verb_.hear(outcome); }
  [[nodiscard]] Result take(std::error_code& error) {
    auto result = verb_.take(error);
    return make_(std::move(result), error);
  }

 private:
  Verb verb_;
  Make make_;
};

template <class Verb>
void commit(Verb& verb) noexcept {
  if constexpr (requires { verb.commit(); }) verb.commit();
}

/// Executes a plan, blocking, and has its outcome heard. REQUIRES: the plan has at most `n` steps.
template <std::size_t n, class Verb>
void ask(Verb& verb, const Plan& plan) {
  std::array<Word, n * max_output> output{};
  const auto told = std::span<Word>(output).first(output_count(plan.steps()));
  Outcome outcome;
  if constexpr (n == 1) {  // the decision on the step is that on the plan
    outcome.decision = decide_own(verb.store(), plan, outcome.error, {}, told);
    if (!outcome.error) outcome.steps = {&outcome.decision, 1};
    if (!outcome.error) outcome.output = told;
    verb.hear(outcome);
  } else {
    std::array<Decision, n> each;
    outcome.decision = decide_own(verb.store(), plan, outcome.error, each, told);
    if (!outcome.error) outcome.steps = std::span(each).first(plan.steps().size());
    if (!outcome.error) outcome.output = told;
    verb.hear(outcome);
  }
}

/// The blocking form of a call. REQUIRES: no plan has more than three steps.
template <class Verb>
typename Verb::Result drive(Verb& verb, std::error_code& error) {
  while (const auto plan = verb.next()) {
    if (plan->steps().size() == 1) {
      ask<1>(verb, *plan);
    } else {
      ask<3>(verb, *plan);
    }
  }
  commit(verb);
  return verb.take(error);
}
template <class Verb>
typename Verb::Result run(Verb verb, std::error_code& error) {
  return drive(verb, error);
}

/// Drives a verb without blocking. `Self` has `verb()`, which returns it, and `finished()`, which
/// is called once, when the verb is over: inside proceed() or on a thread of the store. It may
/// destroy the object.
template <class Self>
class Driven {
 public:
  /// `stop` cancels each plan.
  explicit Driven(StopToken stop = {}) noexcept : stop_(std::move(stop)) {}
  Driven(const Driven&) = delete;
  Driven& operator=(const Driven&) = delete;

  void proceed() noexcept {
    for (;;) {
      met_.store(false, std::memory_order_relaxed);
      const std::optional<Plan> plan = self().verb().next();
      if (!plan) return self().finished();
      self().verb().store().execute(stop_.stop_possible() ? plan->cancelled_by(stop_) : *plan,
                                    Completion(&Driven::heard, this));
      // Whichever comes second continues, the answer or this: the plan lives until here.
      // Acquire and release: it sees what the other has written.
      if (!met_.exchange(true, std::memory_order_acq_rel)) return;
    }
  }

 protected:
  ~Driven() = default;
  void cancelled_by(StopToken stop) noexcept { stop_ = std::move(stop); }

 private:
  [[nodiscard]] Self& self() noexcept { return static_cast<Self&>(*this); }
  static void heard(void* context, const Outcome& outcome) noexcept {
    auto& driven = *static_cast<Driven*>(context);
    driven.self().verb().hear(outcome);
    if (driven.met_.exchange(true, std::memory_order_acq_rel)) driven.proceed();
  }

  StopToken stop_;
  std::atomic<bool> met_{false};
};

/// A call whose result goes to `handler(std::error_code, Result)`, which must not throw. It
/// destroys itself afterwards.
template <class Verb, class Handler>
class Running final : public Driven<Running<Verb, Handler>> {
 public:
  /// Starts the call. The handler is made of `args`, which are untouched if there is no memory:
  /// then this throws std::bad_alloc. One allocation.
  template <class... Args>
  static void start(Verb verb, Args&&... args) {
    (new Running(std::move(verb), std::forward<Args>(args)...))->proceed();
  }

 private:
  friend class Driven<Running>;

  template <class... Args>
  explicit Running(Verb verb, Args&&... args)
      : verb_(std::move(verb)), handler_{std::forward<Args>(args)...} {}

  [[nodiscard]] Verb& verb() noexcept { return verb_; }
  void finished() noexcept {
    const std::unique_ptr<Running> mine(this);
    std::error_code error;
    auto result = verb_.take(error);
    commit(verb_);
    handler_(error, std::move(result));
  }

  Verb verb_;
  Handler handler_;
};

}  // namespace sluice::detail
