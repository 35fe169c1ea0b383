// The code that all stores share: checking a plan and concluding its outcome.
#include "sluice/store.hpp"

#include <algorithm>

#include "sluice/extend/binding.hpp"
#include "sluice/extend/conclude.hpp"
#include "sluice/extend/subscription.hpp"
#include "src/util/uninitialized_array.hpp"

namespace sluice {
namespace {

Decision to_decision(const AskedStep& asked, const Verdict& verdict, std::span<const Word> output,
                     std::size_t index, Time at, Source source) noexcept {
  Decision decision;
  decision.allowed = verdict.status == Verdict::allowed;
  decision.source = source;
  decision.step = static_cast<std::uint16_t>(index);
  if (asked.operation->names_part) decision.part = static_cast<std::uint16_t>(output[0]);
  decision.limit = asked.limit;
  decision.remaining = verdict.remaining;
  decision.retry_after = Span{verdict.retry_after};
  decision.reset_after = Span{verdict.reset_after};
  decision.at = at;
  return decision;
}

/// True if `a` takes precedence over `b` in the decision on the plan.
bool decides_over(const Decision& a, const Decision& b) noexcept {
  if (a.allowed != b.allowed) return !a.allowed;
  return a.allowed ? a.remaining < b.remaining : a.retry_after > b.retry_after;
}

class EndedStore final : public Store {
 public:
  void execute(const Plan& /*plan*/, Completion done) noexcept override {
    done.fail(Errc::shut_down);
  }
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

 private:
  SystemClock clock_;
};

}  // namespace

Store& detail::ended_store() noexcept {
  static auto* const store = new EndedStore;  // static objects may use it until the very end
  return *store;
}

std::error_code detail::foreign_error(const Store& store) noexcept {
  return &store == &ended_store() ? Errc::shut_down : Errc::other_store;
}

PlanFault detail::foreign_fault(const Store& store, const Plan& plan) noexcept {
  const auto steps = plan.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (is_foreign(store, steps[i])) {
      return {foreign_error(store), static_cast<std::uint16_t>(i)};
    }
  }
  return {};
}

void detail::execute_own(Store& store, const Plan& plan, Completion done) noexcept {
  const PlanFault fault = foreign_fault(store, plan);
  if (fault.error) return done.fail(fault.error, fault.step);
  store.execute(plan, std::move(done));
}

void Completion::fail(std::error_code error, std::uint16_t step, std::uint16_t part) noexcept {
  Outcome outcome;
  outcome.error = error;
  outcome.decision.step = step;
  outcome.decision.part = part;
  (*this)(outcome);
}

void Store::execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  for (std::size_t i = 0; i < plans.size(); ++i) execute(plans[i], std::move(done[i]));
}

void Store::bind(const Key& /*key*/, Binding& /*binding*/) noexcept {}

void Store::notify(const Key& /*key*/) noexcept {}

std::unique_ptr<Subscription> Store::subscribe(const Key& /*key*/,
                                               std::function<void()> /*seen*/) noexcept {
  return nullptr;
}

StorePart Store::part_of(const Key& /*key*/) const noexcept { return {}; }

std::shared_ptr<const std::string> Store::reason_of(
    const std::error_code& /*error*/) const noexcept {
  return nullptr;
}

std::size_t output_count(std::span<const Step> steps) noexcept {
  std::size_t count = 0;
  for (const Step& step : steps) count += output_count(*step.operation, step.table.size());
  return count;
}

std::span<const Word> output_of(std::span<const Word> output, std::span<const Step> steps,
                                std::size_t index) noexcept {
  return output.subspan(output_count(steps.first(index)), output_count(steps.subspan(index, 1)));
}

RequestId RequestId::draw(Rng& rng) {
  const std::uint64_t high = rng.next();
  return {high, rng.next()};
}

std::array<char, 37> record_name(const RequestId& id) noexcept {
  std::array<char, 37> name{'o', 'n', 'c', 'e', ':'};
  for (std::size_t i = 0; i < 32; ++i) {
    const std::uint64_t word = i < 16 ? id.high : id.low;
    name[5 + i] = "0123456789abcdef"[word >> (60 - 4 * (i % 16)) & 15];
  }
  return name;
}

PlanFault find_fault(const Plan& plan) noexcept {
  const auto steps = plan.steps();
  if (steps.empty() || steps.size() > Plan::max_steps) return {Errc::invalid_plan, 0};
  std::array<char, 37> record;
  if (plan.id()) record = record_name(*plan.id());
  const Key remembers{steps.front().key.tag(), {record.data(), record.size()}};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const auto at = static_cast<std::uint16_t>(i);
    if (!is_valid(step.key)) return {Errc::invalid_key, at};
    if (step.table.size() > max_table_words) return {Errc::invalid_argument, at};
    if (const Word status = step.operation->check(step.args); status < 0) {
      return {static_cast<Errc>(-status), at};
    }
    if (plan.id() && step.key == remembers) [[unlikely]] {
      return {Errc::duplicate_key, at};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (steps[j].key == step.key) return {Errc::duplicate_key, at};
    }
  }
  return {};
}

namespace {

/// `Asked` is a type from which an AskedStep can be constructed.
template <class Asked>
void conclude_all(std::span<const Asked> asked, std::span<const Verdict> verdicts,
                  std::span<const Word> output, Time at, Source source, Completion& done) noexcept {
  if (asked.size() == 1 && verdicts[0].status >= 0) {
    Outcome outcome{
        {}, to_decision(AskedStep(asked[0]), verdicts[0], output, 0, at, source), {}, output};
    outcome.steps = {&outcome.decision, 1};
    return done(outcome);
  }
  detail::UninitializedArray<Decision, Plan::max_steps> each;
  std::size_t decisive = 0;
  std::size_t told = 0;
  Span wait{0};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (verdicts[i].status < 0) {
      return done.fail(static_cast<Errc>(-verdicts[i].status), static_cast<std::uint16_t>(i),
                       static_cast<std::uint16_t>(verdicts[i].remaining));
    }
    const AskedStep step(asked[i]);
    each.make(i, [&] {
      return to_decision(step, verdicts[i], output.subspan(told, step.output), i, at, source);
    });
    told += step.output;
    if (decides_over(each[i], each[decisive])) decisive = i;
    wait = std::max(wait, each[i].retry_after);
  }
  Outcome outcome{{}, each[decisive], {each.data(), asked.size()}, output};
  if (outcome.decision.allowed) {
    outcome.decision.retry_after = wait;  // until the last reservation's time
  }
  done(outcome);
}

}  // namespace

void conclude(std::span<const AskedStep> asked, std::span<const Verdict> verdicts,
              std::span<const Word> output, Time at, Source source, Completion& done) noexcept {
  conclude_all(asked, verdicts, output, at, source, done);
}

void conclude(std::span<const Step> steps, std::span<const Verdict> verdicts,
              std::span<const Word> output, Time at, Source source, Completion& done) noexcept {
  conclude_all(steps, verdicts, output, at, source, done);
}

}  // namespace sluice
