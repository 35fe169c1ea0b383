// A small store of our own, faithful unless told to break one promise: the suite must accept the
// faithful one and reject each broken one by name, or it checks nothing.
// Threading: as a Store, except that some defects exist only because of it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "sluice/algorithms/token_bucket.hpp"
#include "sluice/store.hpp"

namespace sluice::test {

enum class Defect {
  none,
  charges_on_refusal,
  question_charges,
  remaining_off_by_one,
  hint_one_tick_short,
  hint_one_tick_long,
  reset_in_milliseconds,
  wrong_limit,
  writes_before_refusal,
  ignores_second_step,
  names_last_step,
  accepts_duplicates,
  hint_for_the_impossible,
  accepts_negative_cost,
  accepts_empty_keys,
  accepts_long_plans,
  joins_keys_with_colon,
  cuts_keys_at_zero,
  cuts_long_keys,
  checks_and_writes_apart,
  locks_per_step,
  batch_reversed,
  binding_is_another_key,
  forgets_early,
  stamp_moves_back,
  locked_out_by_clock,
  own_clock,
  stuck_clock,
};

class BrokenStore final : public Store {
 public:
  BrokenStore(Defect defect, VirtualClock& clock) : defect_(defect), clock_(clock) {}

  void execute(const Plan& plan, Completion done) noexcept override {
    const auto steps = plan.steps();
    const PlanFault fault = find_fault(plan);
    if (fault.error && !overlooks(fault.error)) {
      if (is(Defect::hint_for_the_impossible) && fault.error == Errc::cost_exceeds_capacity) {
        Outcome outcome;
        outcome.decision.retry_after = Span{1'000'000};
        return done(outcome);
      }
      return done.fail(fault.error, fault.step);
    }
    const auto count = std::min(steps.size(), Plan::max_steps);
    std::array<Verdict, Plan::max_steps> verdicts;
    const Word now = read_clock();
    decide_all(steps.first(count), verdicts, now);
    deliver(steps.first(count), {verdicts.data(), count}, now, done);
  }

  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const std::size_t to = is(Defect::batch_reversed) ? plans.size() - 1 - i : i;
      execute(plans[i], std::move(done[to]));
    }
  }

  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

 private:
  struct Entry {
    StateWords state{};
    Word written = 0;
  };

  [[nodiscard]] bool is(Defect defect) const noexcept { return defect_ == defect; }

  [[nodiscard]] bool overlooks(std::error_code error) const noexcept {
    return (is(Defect::accepts_duplicates) && error == Errc::duplicate_key) ||
           (is(Defect::accepts_negative_cost) && error == Errc::invalid_cost) ||
           (is(Defect::accepts_empty_keys) && error == Errc::invalid_key) ||
           (is(Defect::accepts_long_plans) && error == Errc::invalid_plan);
  }

  Word read_clock() noexcept {
    if (is(Defect::own_clock)) return to_word(clock_.now()) + 1;
    if (is(Defect::stuck_clock)) return to_word(VirtualClock::default_start);
    return to_word(clock_.now());
  }

  [[nodiscard]] std::string key_of(const Step& step) const {
    const std::string_view tag = step.key.tag;
    const std::string_view name = step.key.name;
    if (is(Defect::joins_keys_with_colon)) return std::string(tag) + ":" + std::string(name);
    if (is(Defect::cuts_keys_at_zero)) {
      return render(Key{tag.substr(0, tag.find('\0')), name.substr(0, name.find('\0'))});
    }
    if (is(Defect::cuts_long_keys)) return render(Key{tag.substr(0, 256), name.substr(0, 256)});
    return render(step.key) +
           (is(Defect::binding_is_another_key) && step.binding != nullptr ? "+" : "");
  }

  Verdict decide_one(const Step& step, Entry& entry, Word now) const {
    if (is(Defect::forgets_early) && now - entry.written > step.operation->keep(step.args) / 4) {
      entry.state = {};
    }
    if (is(Defect::stamp_moves_back) && entry.state[1] > now) entry.state[1] = now - 1'000;
    if (is(Defect::accepts_negative_cost) && step.args[4] < 0) {
      entry.state = {};
      return {Verdict::allowed, step.args[0], 0, 0};
    }
    const StateWords before = entry.state;
    const bool ahead = entry.state[1] > now + TokenBucketRule::max_ahead;
    Verdict v = step.operation->apply(entry.state, step.args, now);
    if (is(Defect::locked_out_by_clock) && ahead) {
      entry.state = before;
      return {Verdict::refused, 0, before[1] - now, before[1] - now};
    }
    if (is(Defect::charges_on_refusal) && v.status == Verdict::refused) entry.state[0] += 1;
    if (is(Defect::question_charges) && !step.operation->writes && v.remaining > 0) {
      entry.state = {entry.state[0] + step.args[2], now};
    }
    return spoil(v);
  }

  [[nodiscard]] Verdict spoil(Verdict v) const noexcept {
    if (is(Defect::remaining_off_by_one) && v.status == Verdict::allowed) v.remaining += 1;
    if (is(Defect::hint_one_tick_short) && v.retry_after > 0) v.retry_after -= 1;
    if (is(Defect::hint_one_tick_long) && v.retry_after > 0) v.retry_after += 1;
    if (is(Defect::reset_in_milliseconds)) v.reset_after = v.reset_after / 1'000 * 1'000;
    return v;
  }

  void decide_all(std::span<const Step> steps, std::span<Verdict> verdicts, Word now) {
    std::array<Entry, Plan::max_steps> next;
    bool all = true;
    std::unique_lock lock(mutex_);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      next[i] = entries_[key_of(steps[i])];
      const StateWords before = next[i].state;
      verdicts[i] = decide_one(steps[i], next[i], now);
      next[i].written = now;
      const bool writes_now = is(Defect::writes_before_refusal) ||
                              (before != next[i].state && verdicts[i].status != Verdict::allowed);
      if (is(Defect::ignores_second_step) && i > 0) next[i].state = before;
      if (writes_now || is(Defect::locks_per_step)) entries_[key_of(steps[i])] = next[i];
      all = all && verdicts[i].status == Verdict::allowed;
      if (is(Defect::locks_per_step)) pause(lock);
    }
    if (is(Defect::checks_and_writes_apart)) pause(lock);
    if (!all) return;
    for (std::size_t i = 0; i < steps.size() && !is(Defect::locks_per_step); ++i) {
      entries_[key_of(steps[i])] = next[i];
    }
  }

  /// Lets another caller in, as a store without a lock would.
  static void pause(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }

  void deliver(std::span<const Step> steps, std::span<const Verdict> verdicts, Word now,
               Completion& done) noexcept {
    if (!is(Defect::names_last_step) && !is(Defect::wrong_limit)) {
      return conclude(steps, verdicts, to_time(now), Source::other, done);
    }
    Outcome outcome;
    const auto keep = [](void* to, const Outcome& from) noexcept {
      auto* copy = static_cast<Outcome*>(to);
      copy->error = from.error;
      copy->decision = from.decision;
    };
    Completion capture(keep, &outcome);
    conclude(steps, verdicts, to_time(now), Source::other, capture);
    if (is(Defect::names_last_step)) {
      outcome.decision.step = static_cast<std::uint16_t>(steps.size() - 1);
    } else {
      outcome.decision.limit += 1;
    }
    done(outcome);
  }

  const Defect defect_;
  VirtualClock& clock_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace sluice::test
