// What every store shares: checking a plan and concluding its outcome.
#include "sluice/store.hpp"

namespace sluice {
namespace {

Decision to_decision(Word limit, const Verdict& verdict, std::size_t index, Time at,
                     Source source) noexcept {
  Decision decision;
  decision.allowed = verdict.status == Verdict::allowed;
  decision.source = source;
  decision.step = static_cast<std::uint16_t>(index);
  decision.limit = limit;
  decision.remaining = verdict.remaining;
  decision.retry_after = Span{verdict.retry_after};
  decision.reset_after = Span{verdict.reset_after};
  decision.at = at;
  return decision;
}

/// True if `a` says more about the plan than `b` does.
bool decides_over(const Decision& a, const Decision& b) noexcept {
  if (a.allowed != b.allowed) return !a.allowed;
  return a.allowed ? a.remaining < b.remaining : a.retry_after > b.retry_after;
}

}  // namespace

void Completion::fail(std::error_code error, std::uint16_t step) noexcept {
  Outcome outcome;
  outcome.error = error;
  outcome.decision.step = step;
  (*this)(outcome);
}

void Store::execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  for (std::size_t i = 0; i < plans.size(); ++i) execute(plans[i], std::move(done[i]));
}

void Store::bind(const Key& /*key*/, Binding& /*binding*/) noexcept {}

PlanFault find_fault(const Plan& plan) noexcept {
  const auto steps = plan.steps();
  if (steps.empty() || steps.size() > Plan::max_steps) return {Errc::invalid_plan, 0};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const auto at = static_cast<std::uint16_t>(i);
    if (!is_valid(step.key)) return {Errc::invalid_key, at};
    if (const Word status = step.operation->check(step.args); status < 0) {
      return {static_cast<Errc>(-status), at};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (steps[j].key == step.key) return {Errc::duplicate_key, at};
    }
  }
  return {};
}

void conclude(std::span<const Word> limits, std::span<const Verdict> verdicts, Time at,
              Source source, Completion& done) noexcept {
  if (limits.size() == 1 && verdicts[0].status >= 0) {
    const Decision only = to_decision(limits[0], verdicts[0], 0, at, source);
    return done(Outcome{{}, only, {&only, 1}});
  }
  std::array<Decision, Plan::max_steps> each;
  std::size_t decisive = 0;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (verdicts[i].status < 0) {
      return done.fail(static_cast<Errc>(-verdicts[i].status), static_cast<std::uint16_t>(i));
    }
    each[i] = to_decision(limits[i], verdicts[i], i, at, source);
    if (decides_over(each[i], each[decisive])) decisive = i;
  }
  done(Outcome{{}, each[decisive], {each.data(), limits.size()}});
}

void conclude(std::span<const Step> steps, std::span<const Verdict> verdicts, Time at,
              Source source, Completion& done) noexcept {
  std::array<Word, Plan::max_steps> limits;
  for (std::size_t i = 0; i < steps.size(); ++i) limits[i] = steps[i].args[0];
  conclude({limits.data(), steps.size()}, verdicts, at, source, done);
}

}  // namespace sluice
