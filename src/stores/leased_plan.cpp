// LeasedStore: plans of several steps. Steps of which enough is held are decided here, the others
// by the store behind, and all of them only together.
#include <algorithm>
#include <new>

#include "src/stores/leased_impl.hpp"

namespace sluice {

/// A plan of which a part is decided here.
class LeasedStore::Impl::PlanCall final : public detail::PassedCall {
 public:
  explicit PlanCall(Impl& store) noexcept : impl_(store) {}
  /// Units that were not spent go back to their lots.
  ~PlanCall() override { restore(); }

  /// Spends what the plan needs of what is held.
  void spend(const Plan& plan) noexcept {
    for (const Step& step : plan.steps()) {
      Part& part = parts_[count_++];
      part.asked = AskedStep(step);
      const auto request = leased::request_of(step);
      part.here = request && impl_.spend_now(step, *request, part);
      here_ += part.here ? 1U : 0U;
    }
  }
  [[nodiscard]] bool is_nothing_here() const noexcept { return here_ == 0; }
  [[nodiscard]] bool is_all_here() const noexcept { return here_ == count_; }

  /// The steps for the store behind.
  [[nodiscard]] std::vector<Step> others(const Plan& plan) const {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < count_; ++i) {
      if (!parts_[i].here) steps.push_back(plan.steps()[i]);
    }
    return steps;
  }

  void answered(const Outcome& outcome) noexcept override { conclude(outcome); }
  void conclude(const Outcome& outcome) noexcept;

 private:
  void restore() noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      if (parts_[i].here) impl_.restore(parts_[i]);
      parts_[i].here = false;
    }
  }
  /// The index in the whole plan of a step of the others.
  [[nodiscard]] std::uint16_t place_of(std::size_t step) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!parts_[i].here && step-- == 0) return static_cast<std::uint16_t>(i);
    }
    return 0;
  }

  Impl& impl_;
  std::array<Part, Plan::max_steps> parts_;
  std::size_t count_ = 0;
  std::size_t here_ = 0;
};

/// Joins the decisions of both sides, as sluice::conclude() does those of one.
void LeasedStore::Impl::PlanCall::conclude(const Outcome& outcome) noexcept {
  if (outcome.error) {
    const Decision& of = outcome.decision;
    const std::uint16_t step = place_of(of.step);
    restore();
    return done.fail(outcome.error, step, of.part);
  }
  std::array<Decision, Plan::max_steps> each;
  std::array<Word, Plan::max_steps * max_output> output{};
  std::size_t told = 0;
  std::size_t read = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const Part& part = parts_[i];
    const auto own = std::span<Word>(output).subspan(told, part.asked.output);
    told += own.size();
    if (part.here) {
      each[i] = part.answer.decision;
      std::copy_n(part.answer.output.begin(), own.size(), own.begin());
    } else {
      each[i] = outcome.steps[next++];
      std::copy_n(outcome.output.begin() + static_cast<std::ptrdiff_t>(read), own.size(),
                  own.begin());
      read += own.size();
    }
    each[i].step = static_cast<std::uint16_t>(i);
  }
  Decision decision = outcome.decision;
  decision.step = place_of(decision.step);
  if (is_all_here() || decision.allowed) {
    const auto least = [](const Decision& a, const Decision& b) {
      return a.remaining < b.remaining;
    };
    decision = *std::min_element(each.begin(), each.begin() + count_, least);
    for (std::size_t i = 0; i < count_; ++i) {
      decision.retry_after = std::max(decision.retry_after, each[i].retry_after);
      parts_[i].here = false;  // spent
    }
  } else {
    restore();
  }
  done({{}, decision, {each.data(), count_}, {output.data(), told}});
}

bool LeasedStore::Impl::spend_now(const Step& step, const leased::Request& request,
                                  Part& part) noexcept {
  part.hash = hash_of(step.key);
  Shard& shard = shard_of(part.hash);
  Departure departure;
  bool spent = false;
  {
    const std::lock_guard lock(shard.mutex);
    Entry* const entry = find_or_make(shard, part.hash, step);
    if (entry == nullptr || !entry->account.may_grant(request.cost)) return false;
    const Time now = read_clock(*entry);
    if (entry->waiting.empty() && entry->account.can_spend(request.cost, now)) {
      const leased::Local local = *entry->account.decide(request, now);
      write(part.answer, step, local, *entry, now);
      part.taken = *local.taken;
      part.cost = request.cost;
      part.epoch = entry->account.epoch();
      spent = true;
    } else {
      entry->account.note_demand(request.cost, now);
    }
    if (!entry->under_way && entry->account.runs_low(now)) departure = depart(*entry, now);
  }
  send(departure);
  return spent;
}

void LeasedStore::Impl::restore(const Part& part) noexcept {
  Shard& shard = shard_of(part.hash);
  const std::lock_guard lock(shard.mutex);
  Entry* const entry = find(shard, part.hash);
  if (entry != nullptr && entry->account.epoch() == part.epoch) {
    entry->account.restore(part.taken, part.cost);
  }
}

void LeasedStore::Impl::decide_plan(const Plan& plan, Completion& done) noexcept {
  if (const PlanFault fault = find_fault(plan); fault.error) {
    return done.fail(fault.error, fault.step);
  }
  const auto steps = plan.steps();
  const bool any = std::any_of(steps.begin(), steps.end(),
                               [](const Step& step) { return leased::request_of(step); });
  if (!any) return pass_on(plan, done);
  std::unique_ptr<detail::PassedCall> passed;
  try {
    auto call = std::make_unique<PlanCall>(*this);
    call->spend(plan);
    if (call->is_nothing_here()) return pass_on(plan, done);
    if (call->is_all_here()) {
      ++counts_.local;
      call->done = std::move(done);
      return call->conclude({});
    }
    const std::vector<Step> others = call->others(plan);
    call->done = std::move(done);
    passed = std::move(call);
    Completion completion = in_flight_.pass(passed);
    pass_on(plan.with_steps(others), completion);
  } catch (const std::bad_alloc&) {
    Completion& left = passed ? passed->done : done;
    left.fail(Errc::queue_full);
  }
}

}  // namespace sluice
