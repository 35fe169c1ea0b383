#include "sluice/fallback_store.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/detail/held_lease.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/extend/conclude.hpp"
#include "sluice/extend/owned_plan.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/rules/leases.hpp"
#include "src/stores/fallback_rules.hpp"

namespace sluice {
namespace {

using WithoutStore = Operation::WithoutStore;
using Result = CircuitBreaker::Result;

constexpr std::size_t max_plan_output = Plan::max_steps * max_output;

/// The key holds something else, or a corrupt state: the store works, but has no answer.
bool is_unreadable(const std::error_code& error) noexcept {
  return error == Errc::wrong_type || error == Errc::corrupt_state;
}

/// The result of a call for the breaker.
Result result_of(const std::error_code& error, const Plan& plan) noexcept {
  if (!error) return Result::success;
  if (error.category() != error_category()) return Result::failure;
  switch (static_cast<Errc>(error.value())) {
    case Errc::wrong_type:
    case Errc::wrong_kind:
    case Errc::corrupt_state:
    case Errc::not_configured:
    case Errc::config_changed:
    case Errc::outside_calendar:
    case Errc::id_reused:
      return Result::success;  // the store has read the key
    case Errc::cost_exceeds_capacity:
    case Errc::invalid_cost:
    case Errc::invalid_key:
    case Errc::duplicate_key:
    case Errc::invalid_plan:
    case Errc::unsupported_operation:
    case Errc::invalid_argument:
    case Errc::would_deadlock:
    case Errc::cross_slot:
    case Errc::store_full:
    case Errc::cancelled:
    case Errc::shut_down:
    case Errc::forked:
    case Errc::too_many_waiters:
    case Errc::lease_not_live:
    case Errc::other_store:
      return Result::unclear;
    case Errc::timed_out:
      return plan.timeout() < Span{0} ? Result::unclear : Result::failure;
    case Errc::unknown:
      return plan.stop().stop_requested() ? Result::unclear : Result::failure;
    default:
      return Result::failure;
  }
}

/// A release or renewal of one lease: its id determines which store granted it. A skipped step in
/// the plan, such as one of a wait queue, does not matter.
bool is_of_lease(const Plan& plan) noexcept {
  const auto steps = plan.steps();
  return steps[0].operation->without_store == WithoutStore::local_lease &&
         std::all_of(steps.begin() + 1, steps.end(), [](const Step& step) {
           return step.operation->without_store == WithoutStore::skipped;
         });
}

/// True if the answer says that the lease exists.
bool knows_lease(const Operation& operation, const Outcome& outcome) noexcept {
  if (outcome.error || !outcome.decision.allowed) return false;
  return &operation != &leases_release || outcome.output[0] == 1;
}

bool may_answer(FailurePolicy::Kind kind, WithoutStore answer, bool one_lease) noexcept {
  const bool local = kind == FailurePolicy::Kind::local;
  switch (answer) {
    case WithoutStore::fresh_state:
    case WithoutStore::skipped:
      return true;
    case WithoutStore::no_state:
      return !local;
    case WithoutStore::local_only:
      return local;
    case WithoutStore::local_lease:
      return local && one_lease;
    case WithoutStore::error:
      return false;
  }
  return false;
}

}  // namespace

FailurePolicy FailurePolicy::local(const StoreHandle& store, Word clients) {
  constexpr Word most = Word{1} << 20;
  if (clients < 1 || clients > most) {
    throw std::invalid_argument("FailurePolicy::local: clients must be 1 to 1048576, got " +
                                std::to_string(clients));
  }
  return {Kind::local, store, clients};
}

/// A plan sent to the primary.
class FallbackStore::PrimaryCall final : public detail::PassedCall {
 public:
  PrimaryCall(FallbackStore& store, const Plan& plan, const CircuitBreaker::Permit& permit)
      : store_(store), plan_(plan), permit_(permit) {}

  void answered(const Outcome& outcome) noexcept override {
    const Plan plan = plan_.view();
    const Result result = result_of(outcome.error, plan);
    const bool own_fault = store_.is_impatient(plan) &&
                           (outcome.error == Errc::timed_out || outcome.error == Errc::unknown);
    store_.probes_.end(permit_, own_fault ? Result::unclear : result);
    const bool unreadable = is_unreadable(outcome.error);
    if (unreadable) ++store_.counts_.unreadable;
    // The policy answers, and nobody releases what the primary may have granted.
    if (outcome.error == Failure::unknown) detail::HeldLease::release_unknown(store_.inner(), plan);
    if (result == Result::failure || unreadable) {
      if (!unreadable) ++store_.counts_.failures;
      return store_.decide_without(plan, outcome.error, store_.breaker_.wait(permit_.part),
                                   std::move(done));
    }
    const bool perhaps_here = !outcome.error && store_.has_leased_ && is_of_lease(plan) &&
                              !knows_lease(*plan.steps()[0].operation, outcome);
    if (perhaps_here) return store_.ask_local_holder(plan, outcome, done);
    done(outcome);
  }

 private:
  FallbackStore& store_;
  OwnedPlan plan_;
  CircuitBreaker::Permit permit_;
};

/// A plan sent to the local store, possibly without some of its steps.
class FallbackStore::LocalCall final : public detail::PassedCall {
 public:
  LocalCall(FallbackStore& store, std::span<const Step> steps) : store_(store) {
    for (const Step& step : steps) {
      skipped_[count_] = step.operation->without_store == WithoutStore::skipped;
      asked_[count_++] = AskedStep(step);
    }
  }

  /// The answer if the local store does not have the lease.
  void unless_held(const Outcome& first) {
    first_.emplace(First{first.error, first.decision, {}, {}, first.output.size()});
    std::copy(first.steps.begin(), first.steps.end(), first_->each.begin());
    std::copy(first.output.begin(), first.output.end(), first_->output.begin());
  }

  void answered(const Outcome& outcome) noexcept override {
    if (first_ && !knows_lease(*asked_[0].operation, outcome)) return answer_first();
    if (outcome.error) {
      const Decision& of = outcome.decision;
      return store_.fail(done, outcome.error, place_of(of.step), of.part);
    }
    std::array<Decision, Plan::max_steps> each;
    std::array<Word, max_plan_output> output{};
    std::size_t told = 0;
    std::size_t read = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const auto own = std::span<Word>(output).subspan(told, asked_[i].output);
      told += own.size();
      if (skipped_[i]) {
        each[i].allowed = true;
        each[i].limit = each[i].remaining = asked_[i].limit;
        each[i].at = outcome.decision.at;
      } else {
        each[i] = outcome.steps[next++];
        std::copy_n(outcome.output.begin() + static_cast<std::ptrdiff_t>(read), own.size(),
                    own.begin());
        read += own.size();
        detail::forget_charge(*asked_[i].operation, own);
      }
      each[i].step = static_cast<std::uint16_t>(i);
      each[i].source = Source::fallback;
    }
    Decision decision = outcome.decision;
    decision.step = static_cast<std::uint16_t>(place_of(decision.step));
    decision.source = Source::fallback;
    store_.deliver(done, {{}, decision, {each.data(), count_}, {output.data(), told}});
  }

 private:
  struct First {
    std::error_code error;
    Decision decision;
    std::array<Decision, Plan::max_steps> each;
    std::array<Word, max_plan_output> output;
    std::size_t output_count;
  };

  void answer_first() noexcept {
    if (first_->error) return store_.fail(done, first_->error, 0);
    done({{},
          first_->decision,
          {first_->each.data(), count_},
          {first_->output.data(), first_->output_count}});
  }

  /// The index in the whole plan of a step of the local plan.
  [[nodiscard]] std::size_t place_of(std::size_t step) const noexcept {
    std::size_t place = 0;
    for (std::size_t left = step;; ++place) {
      if (place + 1 >= count_) return place;
      if (!skipped_[place] && left-- == 0) return place;
    }
  }

  FallbackStore& store_;
  std::array<AskedStep, Plan::max_steps> asked_;
  std::array<bool, Plan::max_steps> skipped_{};
  std::size_t count_ = 0;
  std::optional<First> first_;
};

FallbackStore::Probes::~Probes() {
  if (!home_.is_here()) return;
  for (const CircuitBreaker::Permit& permit : pending_) breaker_.answer(permit, Result::unclear);
}

void FallbackStore::Probes::begin(const CircuitBreaker::Permit& permit) {
  if (!permit.is_probe) return;
  const std::lock_guard lock(mutex_);
  pending_.push_back(permit);
}

void FallbackStore::Probes::end(const CircuitBreaker::Permit& permit, Result result) noexcept {
  if (permit.is_probe) {  // before the breaker can allow the next one
    const std::lock_guard lock(mutex_);
    std::erase_if(pending_, [&](const auto& one) { return one.part == permit.part; });
  }
  breaker_.answer(permit, result);
}

FallbackStore::FallbackStore(const StoreHandle& primary, CircuitBreaker& breaker,
                             const FailurePolicy& policy, Span within)
    : StoreWrapper(primary), breaker_(breaker), policy_(policy), within_(within), probes_(breaker) {
  if (within < Span{1}) {
    throw std::invalid_argument("FallbackStore: within must be 1 us or more, got " +
                                std::to_string(within.count()) + " us");
  }
}

/// The plan for the primary, with a timeout. A probe with a longer one than `within` would delay
/// all other calls until its end.
Plan FallbackStore::timed(const Plan& plan, bool is_probe) const noexcept {
  const bool too_long = is_probe && plan.timeout() > within_;
  return plan.timeout() == Span{0} || too_long ? plan.within(within_) : plan;
}

/// The part of the primary that decides the plan; an invalid plan may have no step.
StorePart FallbackStore::part_for(const Plan& plan) const noexcept {
  return plan.steps().empty() ? StorePart{} : inner().part_of(plan.steps()[0].key);
}

/// The plan and completion for the primary; none if the plan was answered here.
std::optional<FallbackStore::Passed> FallbackStore::pass_on(const Plan& plan, const StorePart& part,
                                                            Completion& done) noexcept {
  const auto fail_with = [&](std::error_code error, std::uint16_t step = 0) {
    done.fail(error, step);
    return std::nullopt;
  };
  if (const PlanFault fault = find_fault(plan); fault.error) {
    return fail_with(fault.error, fault.step);
  }
  if (detail::is_constant(plan)) {
    detail::answer_constant(plan, inner().clock().now(), Source::other, done);
    return std::nullopt;
  }
  const CircuitBreaker::Permit permit = breaker_.ask(part.index, part.comebacks);
  if (!permit) {
    // The primary's answer, which does not depend on state.
    if (plan.timeout() < Span{0}) return fail_with(Errc::timed_out);
    if (plan.stop().stop_requested()) return fail_with(Errc::cancelled);
    decide_without(plan, Errc::circuit_open, permit.wait, std::move(done));
    return std::nullopt;
  }
  std::unique_ptr<detail::PassedCall> call;
  try {
    probes_.begin(permit);
    call = std::make_unique<PrimaryCall>(*this, plan, permit);
    call->done = std::move(done);
    Passed passed{timed(plan, permit.is_probe), in_flight_.pass(call)};
    ++counts_.primary;
    return passed;
  } catch (const std::bad_alloc&) {
    probes_.end(permit, Result::unclear);
    Completion& left = call ? call->done : done;
    left.fail(Errc::queue_full);
    return std::nullopt;
  }
}

void FallbackStore::execute(const Plan& plan, Completion done) noexcept {
  if (!home_.is_here()) return inner().execute(plan, std::move(done));
  if (auto passed = pass_on(plan, part_for(plan), done)) {
    inner().execute(passed->plan, std::move(passed->done));
  }
}

void FallbackStore::execute_batch(std::span<const Plan> plans,
                                  std::span<Completion> done) noexcept {
  if (!home_.is_here()) return inner().execute_batch(plans, done);
  std::vector<Plan> asked;
  std::vector<Completion> passed;
  try {
    asked.reserve(plans.size());
    passed.reserve(plans.size());
  } catch (const std::bad_alloc&) {
    return Store::execute_batch(plans, done);
  }
  std::optional<unsigned> closed;  // the part of the latest plan that goes with the others
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const StorePart part = part_for(plans[i]);
    const bool together =
        closed == part.index || breaker_.state(part.index) == CircuitBreaker::State::closed;
    if (!together) continue;
    closed = part.index;
    if (auto one = pass_on(plans[i], part, done[i])) {
      asked.push_back(one->plan);
      passed.push_back(std::move(one->done));
    }
  }
  if (!asked.empty()) inner().execute_batch(asked, passed);
  // A probe goes alone: its result decides about the others of its part.
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (done[i]) execute(plans[i], std::move(done[i]));
  }
}

bool FallbackStore::may_block() const noexcept {
  return inner().may_block() && (policy_.store() == nullptr || policy_.store()->may_block());
}

FallbackStats FallbackStore::stats() const noexcept {
  return {counts_.primary,  counts_.failures, counts_.grants,
          counts_.refusals, counts_.errors,   counts_.unreadable};
}

void FallbackStore::decide_without(const Plan& plan, std::error_code error, Span hint,
                                   Completion done) noexcept {
  const auto steps = plan.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const WithoutStore answer = steps[i].operation->without_store;
    if (!may_answer(policy_.kind(), answer, is_of_lease(plan))) return fail(done, error, i);
  }
  switch (policy_.kind()) {
    case FailurePolicy::Kind::open:
      return answer_by_policy(plan, StepSet(), hint, done);
    case FailurePolicy::Kind::closed:
      return answer_by_policy(plan, StepSet().set(), hint, done);
    case FailurePolicy::Kind::local:
      return decide_locally(plan, error, hint, done);
  }
}

/// Runs each rule on an absent state for its output words; the policy is the decision.
void FallbackStore::answer_by_policy(const Plan& plan, StepSet refused, Span hint,
                                     Completion& done) noexcept {
  const auto steps = plan.steps();
  bool admitted = true;
  const Time now = inner().clock().now();
  const StateWords absent{};
  std::array<Verdict, Plan::max_steps> verdicts;
  std::array<Word, max_plan_output> output{};
  std::size_t told = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const std::size_t count = output_count(*step.operation, step.table.size());
    const auto own = std::span<Word>(output).subspan(told, count);
    told += count;
    Verdict& verdict = verdicts[i];
    const bool is_constant = step.operation->kind == StateKind::constant;
    bool admits = !refused[i];
    verdict.remaining = step.args[0];  // an unknown number must not determine the plan's decision
    if (step.operation->without_store == WithoutStore::fresh_state) {
      Effects effects;
      verdict = run(*step.operation, absent, {step.args, step.table}, to_word(now), effects);
      if (verdict.status < 0) return fail(done, static_cast<Errc>(-verdict.status), i);
      if (is_constant) admits = verdict.status == Verdict::allowed;
      const std::size_t kept = admits ? count : step.operation->names_part ? 1 : 0;
      std::copy_n(effects.output().begin(), kept, own.begin());
    }
    admitted = admitted && admits;
    if (is_constant) continue;
    if (admits) {
      detail::forget_charge(*step.operation, own);
      verdict = {Verdict::allowed, verdict.remaining, 0, verdict.reset_after};
    } else {
      verdict = {Verdict::refused, 0, std::max(Word{1}, hint.count()), 0};
    }
  }
  ++(admitted ? counts_.grants : counts_.refusals);
  conclude(steps, {verdicts.data(), steps.size()}, {output.data(), told}, now, Source::policy,
           done);
}

void FallbackStore::decide_locally(const Plan& plan, std::error_code error, Span hint,
                                   Completion& done) noexcept {
  if (is_of_lease(plan)) {
    Outcome first;
    first.error = error;
    return ask_local_holder(plan, first, done);
  }
  try {
    std::array<std::array<Word, max_table_words>, Plan::max_steps> tables;
    std::vector<Step> shares;
    StepSet too_large;  // for their share
    bool leases = false;
    for (std::size_t i = 0; i < plan.steps().size(); ++i) {
      const Step& step = plan.steps()[i];
      if (step.operation->without_store == WithoutStore::skipped) continue;
      shares.push_back(step);
      auto& table = tables[shares.size() - 1];
      too_large[i] = !detail::take_share(shares.back(), policy_.clients(), table);
      leases = leases || step.operation == &leases_acquire;
    }
    if (too_large.any()) return answer_by_policy(plan, too_large, hint, done);
    if (shares.empty()) return fail(done, error, 0);
    if (leases) has_leased_ = true;
    ask_local(plan.with_steps(shares), std::make_unique<LocalCall>(*this, plan.steps()), done);
  } catch (const std::bad_alloc&) {
    fail(done, Errc::queue_full, 0);
  }
}

void FallbackStore::ask_local_holder(const Plan& plan, const Outcome& first,
                                     Completion& done) noexcept {
  Step step = plan.steps()[0];
  std::array<Word, max_table_words> table;
  if (!detail::take_share(step, policy_.clients(), table)) {
    return first.error ? fail(done, first.error, 0) : done(first);
  }
  try {
    auto call = std::make_unique<LocalCall>(*this, plan.steps());
    call->unless_held(first);
    ask_local(plan.with_steps({&step, 1}), std::move(call), done);
  } catch (const std::bad_alloc&) {
    fail(done, Errc::queue_full, 0);
  }
}

void FallbackStore::ask_local(const Plan& plan, std::unique_ptr<detail::PassedCall> call,
                              Completion& done) noexcept {
  call->done = std::move(done);
  const Plan asked = Plan(plan.steps()).cancelled_by(plan.stop());  // without the id
  try {
    policy_.store()->execute(plan.timeout() == Span{0} ? asked : asked.within(plan.timeout()),
                             in_flight_.pass(call));
  } catch (const std::bad_alloc&) {
    fail(call->done, Errc::queue_full, 0);
  }
}

void FallbackStore::deliver(Completion& done, const Outcome& outcome) noexcept {
  ++(outcome.decision.allowed ? counts_.grants : counts_.refusals);
  done(outcome);
}

void FallbackStore::fail(Completion& done, std::error_code error, std::size_t step,
                         std::uint16_t part) noexcept {
  ++counts_.errors;
  done.fail(error, static_cast<std::uint16_t>(step), part);
}

}  // namespace sluice
