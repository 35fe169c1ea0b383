// Asking limits that are not obeyed.
#include "sluice/shadow_store.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <mutex>
#include <new>
#include <stdexcept>

#include "sluice/detail/limit_of.hpp"
#include "sluice/extend/effects.hpp"
#include "sluice/extend/operation.hpp"
#include "sluice/extend/owned_plan.hpp"
#include "src/observe/told_step.hpp"
#include "src/util/published.hpp"

namespace sluice {
namespace {

using Names = std::vector<std::string>;

std::unique_ptr<const Names> sorted(Names names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (!names.empty() && names.front().empty()) {
    throw std::invalid_argument("ShadowStore: the name of a limiter is empty");
  }
  return std::make_unique<const Names>(std::move(names));
}

/// The caller must know, whether or not the limit is obeyed; the limiter may ask again.
bool concerns_caller(const std::error_code& error) noexcept {
  if (error.category() != error_category()) return false;
  switch (static_cast<Errc>(error.value())) {
    case Errc::invalid_cost:
    case Errc::invalid_key:
    case Errc::invalid_argument:
    case Errc::invalid_plan:
    case Errc::duplicate_key:
    case Errc::unsupported_operation:
    case Errc::not_configured:
    case Errc::config_changed:
    case Errc::outside_calendar:
    case Errc::would_deadlock:
    case Errc::cancelled:
    case Errc::shut_down:
    case Errc::forked:
      return true;
    default:
      return false;
  }
}

/// What an unlimited limit answers to the step, with the output words in `effects`. The error is
/// that of a request which no limit accepts.
Decision unlimited_answer(Step step, const Decision& refused, Effects& effects,
                          std::error_code& error) noexcept {
  step.args[0] = unlimited;
  step = detail::constant_step(step);
  const Verdict verdict = run(*step.operation, {}, {step.args, {}}, to_word(refused.at), effects);
  error =
      verdict.status < 0 ? make_error_code(static_cast<Errc>(-verdict.status)) : std::error_code();
  if (error) return {};
  return {.allowed = true,
          .source = refused.source,
          .limit = unlimited,
          .remaining = unlimited,
          .at = refused.at};
}

}  // namespace

/// A pointer, since users of the header do not see Published.
struct ShadowStore::Shadows {
  detail::Published<Names> names;
};

/// A plan with shadows under way: its other steps first, then each shadow.
struct ShadowStore::Trial {
  explicit Trial(const Plan& the_plan) : plan(the_plan) {}

  [[nodiscard]] std::span<const Step> steps() const noexcept { return plan.view().steps(); }
  /// The first shadow that was not asked yet; steps().size(): none.
  [[nodiscard]] std::size_t next_shadow() const noexcept {
    std::size_t next = 0;
    while (next < steps().size() && (!is_shadow[next] || is_asked[next])) ++next;
    return next;
  }
  /// Where the output words of a step stand.
  [[nodiscard]] std::span<Word> output_at(std::size_t index) noexcept {
    const std::size_t begin = output_count(steps().first(index));
    return std::span(output).subspan(begin, output_count(steps().subspan(index, 1)));
  }
  void answer(std::size_t index, const Decision& own_decision,
              std::span<const Word> words) noexcept {
    is_asked.set(index);
    decisions[index] = own_decision;
    decisions[index].step = static_cast<std::uint16_t>(index);
    const std::span<Word> own = output_at(index);
    std::copy_n(words.begin(), std::min(words.size(), own.size()), own.begin());
  }
  /// As an unlimited limit answers. The error is that of a request which none accepts.
  std::error_code answer_unlimited(std::size_t index, const Decision& refused) noexcept {
    Effects effects;
    std::error_code error;
    const Decision free = unlimited_answer(steps()[index], refused, effects, error);
    if (!error) answer(index, free, effects.output());
    return error;
  }
  /// Keeps the answer of the others, whose indices are `obeyed`.
  void keep(const Outcome& outcome) noexcept {
    std::array<std::size_t, Plan::max_steps> places{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < steps().size(); ++i) {
      if (!is_shadow[i]) places[count++] = i;
    }
    std::size_t begin = 0;
    for (std::size_t i = 0; i < outcome.steps.size(); ++i) {
      const std::size_t words = output_at(places[i]).size();
      answer(places[i], outcome.steps[i], outcome.output.subspan(begin, words));
      begin += words;
    }
    of_others = outcome.decision;
    of_others.step = static_cast<std::uint16_t>(places[outcome.decision.step]);
    has_decision = true;
  }
  void deliver(Completion& done) noexcept {
    const std::size_t count = steps().size();
    done({.error = {},
          .decision = has_decision ? of_others : decisions[0],
          .steps = std::span(decisions).first(count),
          .output = std::span(output).first(output_count(steps()))});
  }

  OwnedPlan plan;
  std::vector<Step> others{};  // views of the plan
  std::bitset<Plan::max_steps> is_shadow{};
  std::bitset<Plan::max_steps> is_asked{};
  bool has_decision = false;
  Decision of_others{};
  std::array<Decision, Plan::max_steps> decisions{};
  std::array<Word, Plan::max_steps * max_output> output{};
};

/// One request of a trial.
class ShadowStore::Hop final : public detail::PassedCall {
 public:
  Hop(ShadowStore& store, std::unique_ptr<Trial> trial, std::size_t shadow)
      : store_(store), trial_(std::move(trial)), shadow_(shadow) {}

  /// What it asks; views the trial.
  [[nodiscard]] Plan plan() const {
    const Plan whole = trial_->plan.view();
    if (!is_of_shadow()) return whole.with_steps(trial_->others);
    const Plan own = Plan(trial_->steps().subspan(shadow_, 1)).cancelled_by(whole.stop());
    return whole.timeout() == Span{0} ? own : own.within(whole.timeout());
  }
  void answered(const Outcome& outcome) noexcept override {
    if (!is_of_shadow()) {
      if (outcome.error) return fail(outcome.error, outcome.decision);
      trial_->keep(outcome);
      if (!outcome.decision.allowed) return trial_->deliver(done);
    } else if (const auto error = hear(outcome.error, outcome.decision, outcome.output)) {
      return fail(error, outcome.decision);
    }
    store_.go_on(std::move(trial_), std::move(done));
  }
  /// The answer of the shadow. Returns an error that fails the call.
  std::error_code hear(const std::error_code& error, const Decision& decision,
                       std::span<const Word> output) noexcept {
    if (!error && decision.allowed) {
      trial_->answer(shadow_, decision, output);
      return {};
    }
    if (error && concerns_caller(error)) return error;
    store_.tell(detail::told_step(trial_->steps(), shadow_), decision, error,
                trial_->plan.view().is_of_wait());
    Decision refused = decision;
    if (error) refused = {.at = store_.clock().now()};
    return trial_->answer_unlimited(shadow_, refused);
  }

 private:
  [[nodiscard]] bool is_of_shadow() const noexcept { return shadow_ < trial_->steps().size(); }
  void fail(const std::error_code& error, const Decision& decision) noexcept {
    std::size_t step = shadow_;
    if (!is_of_shadow()) {
      step = 0;
      for (std::size_t left = decision.step; trial_->is_shadow[step] || left > 0; ++step) {
        if (!trial_->is_shadow[step]) --left;
      }
    }
    done.fail(error, static_cast<std::uint16_t>(step), decision.part);
  }

  ShadowStore& store_;
  std::unique_ptr<Trial> trial_;
  std::size_t shadow_;  // its index; the number of steps: this asks the others
};

ShadowStore::ShadowStore(const StoreHandle& inner, Observer& observer, Names limiters,
                         detail::TextArg name)
    : StoreWrapper(inner),
      observer_(observer),
      name_(name.view()),
      shadows_(new Shadows{detail::Published<Names>(sorted(std::move(limiters)))}) {}

ShadowStore::~ShadowStore() { end(); }

void ShadowStore::set_shadows(Names limiters) {
  shadows_->names.replace(sorted(std::move(limiters)));
}

Names ShadowStore::shadows() const {
  Names copy;
  shadows_->names.read([&copy](const Names& names) {
    copy = names;
    return 0;
  });
  return copy;
}

/// A question of one of the shadows. A slot lock is none: its answer is the number of a slot.
bool ShadowStore::is_shadow(std::span<const Step> steps, std::size_t index) const noexcept {
  const Operation& row = *steps[index].operation;
  if (row.grants == Operation::Grants::nothing || row.kind == StateKind::slot_lock) return false;
  const Step& named = detail::named_by(steps, index);
  const std::string_view limiter = DecisionEvent{.step = named, .decision = {}}.limiter();
  return shadows_->names.read([limiter](const Names& names) {
    return std::binary_search(names.begin(), names.end(), limiter);
  });
}

bool ShadowStore::has_shadows(std::span<const Plan> plans) const noexcept {
  return std::any_of(plans.begin(), plans.end(), [this](const Plan& plan) {
    const auto steps = plan.steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (is_shadow(steps, i)) return true;
    }
    return false;
  });
}

void ShadowStore::tell(const Step& step, const Decision& decision, std::error_code error,
                       bool is_of_wait) const noexcept {
  if (error == Errc::cost_exceeds_capacity) error = {};  // it would be refused, for ever
  DecisionEvent event{step, decision, error, name_, is_of_wait};
  event.is_shadow = true;
  detail::tell(observer_, event);
}

void ShadowStore::execute(const Plan& plan, Completion done) noexcept {
  if (plan.steps().size() > Plan::max_steps || !has_shadows({&plan, 1})) {
    return inner().execute(plan, std::move(done));
  }
  try {
    begin(plan, done);
  } catch (const std::bad_alloc&) {
    done.fail(std::make_error_code(std::errc::not_enough_memory));
  }
}

void ShadowStore::begin(const Plan& plan, Completion& done) {
  auto trial = std::make_unique<Trial>(plan);
  const auto steps = trial->steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    trial->is_shadow[i] = is_shadow(steps, i);
    if (!trial->is_shadow[i]) trial->others.push_back(steps[i]);
  }
  if (trial->others.empty()) return go_on(std::move(trial), std::move(done));
  ask(std::make_unique<Hop>(*this, std::move(trial), steps.size()), done);
}

/// Throws std::bad_alloc, and leaves the completion then.
void ShadowStore::ask(std::unique_ptr<Hop> hop, Completion& done) {
  const Plan asked = hop->plan();
  std::unique_ptr<detail::PassedCall> call = std::move(hop);
  detail::PassedCall& passed = *call;
  Completion completion = in_flight_.pass(call);
  passed.done = std::move(done);
  inner().execute(asked, std::move(completion));
}

/// Asks the next shadow, or delivers.
void ShadowStore::go_on(std::unique_ptr<Trial> trial, Completion done) noexcept {
  const std::size_t shadow = trial->next_shadow();
  if (shadow == trial->steps().size()) return trial->deliver(done);
  try {
    ask(std::make_unique<Hop>(*this, std::move(trial), shadow), done);
  } catch (const std::bad_alloc&) {
    done.fail(std::make_error_code(std::errc::not_enough_memory));
  }
}

Decision ShadowStore::decide_one(const Step& step, std::error_code& error) noexcept {
  const Decision decision = inner().decide_one(step, error);
  if ((!error && decision.allowed) || (error && concerns_caller(error)) ||
      !is_shadow({&step, 1}, 0)) {
    return decision;
  }
  tell(step, decision, error, false);
  const Decision refused = error ? Decision{.at = clock().now()} : decision;
  Effects effects;
  return unlimited_answer(step, refused, effects, error);
}

void ShadowStore::execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  if (!has_shadows(plans)) return inner().execute_batch(plans, done);
  Store::execute_batch(plans, done);
}

void ShadowStore::execute_first(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  if (!has_shadows(plans)) return inner().execute_first(plans, done);
  Store::execute_first(plans, done);
}

}  // namespace sluice
