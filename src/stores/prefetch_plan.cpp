// PrefetchStore: plans of several steps. Steps of which enough is held are decided here, the others
// by the store behind, and all of them only together.
#include <algorithm>
#include <new>

#include "sluice/extend/conclude.hpp"
#include "src/stores/prefetch_impl.hpp"

namespace sluice {

/// A plan of which a part is decided here.
class PrefetchStore::Impl::PlanCall final : public detail::PassedCall {
 public:
  explicit PlanCall(Impl& store) noexcept : impl_(store) {}

  /// Spends what the plan needs of what is held. If the store decides the other steps, units that
  /// may be over before its answer are not spent.
  void spend(const Plan& plan) noexcept {
    for (const Step& step : plan.steps()) {
      Part& part = parts_[count_++];
      part.asked = AskedStep(step);
      const auto request = prefetch::request_of(step);
      part.here = request && impl_.spend_now(step, *request, part);
      here_ += part.here ? 1U : 0U;
    }
    if (is_all_here()) return;
    for (Part& part : std::span(parts_).first(count_)) {
      if (!part.here || part.until - part.spent_at >= impl_.options_.hold / lasting_part) continue;
      impl_.end_part(part, false);
      part.here = false;
      --here_;
    }
  }
  /// Ends what spend() began; false if some of what was spent does not count any more.
  bool end(bool spent) noexcept {
    bool counts = true;
    for (const Part& part : std::span(parts_).first(count_)) {
      if (part.here) counts = impl_.end_part(part, spent) && counts;
    }
    return counts;
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
  /// Units are spent in a plan that the store decides as well if they last for this part of `hold`.
  static constexpr Word lasting_part = 8;

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
void PrefetchStore::Impl::PlanCall::conclude(const Outcome& outcome) noexcept {
  const bool allowed = !outcome.error && (is_all_here() || outcome.decision.allowed);
  const bool counts = end(allowed);
  if (outcome.error) {
    return done.fail(outcome.error, place_of(outcome.decision.step), outcome.decision.part);
  }
  // A window, `hold` or a block has ended units meanwhile, and the store has charged the others.
  if (allowed && !is_all_here() && !counts) return done.fail(Errc::unknown);
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
  if (allowed) {
    const auto least = [](const Decision& a, const Decision& b) {
      return a.remaining < b.remaining;
    };
    decision = *std::min_element(each.begin(), each.begin() + count_, least);
    for (std::size_t i = 0; i < count_; ++i) {
      decision.retry_after = std::max(decision.retry_after, each[i].retry_after);
    }
  }
  done({{}, decision, {each.data(), count_}, {output.data(), told}});
}

bool PrefetchStore::Impl::spend_now(const Step& step, const prefetch::Request& request,
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
      const prefetch::Local local = *entry->account.decide(request, now);
      write(part.answer, step, local, *entry, now);
      part.lot = local.lot->number;
      part.request = request;
      part.spent_at = now;
      part.until = local.until;
      part.epoch = entry->account.epoch();
      ++entry->plans;
      spent = true;
    } else {
      entry->account.note_demand(request.cost, now);
    }
    if (!entry->under_way && entry->account.runs_low(now)) departure = depart(*entry, now);
  }
  send(departure);
  return spent;
}

/// Ends the part of a plan: units that were not spent go back to their lot. False if they do not
/// count any more.
bool PrefetchStore::Impl::end_part(const Part& part, bool spent) noexcept {
  Shard& shard = shard_of(part.hash);
  const std::lock_guard lock(shard.mutex);
  Entry& entry = *find(shard, part.hash);  // its `plans` keep it
  const Time now = read_clock(entry);
  --entry.plans;
  if (!spent) {
    counts_.lapsed +=
        static_cast<std::uint64_t>(entry.account.restore(part.lot, part.request, part.until));
  }
  return entry.account.epoch() == part.epoch && now < part.until;
}

void PrefetchStore::Impl::decide_plan(const Plan& plan, Completion& done) noexcept {
  if (const PlanFault fault = find_fault(plan); fault.error) {
    return done.fail(fault.error, fault.step);
  }
  const auto steps = plan.steps();
  const bool any = std::any_of(steps.begin(), steps.end(),
                               [](const Step& step) { return prefetch::request_of(step); });
  if (!any) return pass_on(plan, done);
  std::unique_ptr<detail::PassedCall> passed;
  PlanCall* call = nullptr;
  try {
    auto made = std::make_unique<PlanCall>(*this);
    call = made.get();
    passed = std::move(made);
    call->spend(plan);
    if (call->is_nothing_here()) return pass_on(plan, done);
    call->done = std::move(done);
    if (call->is_all_here()) {
      ++counts_.local;
      return call->conclude({});
    }
    const std::vector<Step> others = call->others(plan);
    Completion completion = in_flight_.pass(passed);
    pass_on(plan.with_steps(others), completion);
  } catch (const std::bad_alloc&) {
    if (call == nullptr) return done.fail(Errc::queue_full);
    call->end(false);
    call->done.fail(Errc::queue_full);
  }
}

}  // namespace sluice
