// The faithful store, and beside each of its steps the defects that spoil it.
#include "tests/conformance/broken_store.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "sluice/extend/conclude.hpp"
#include "sluice/extend/idempotency_record.hpp"
#include "sluice/rules/token_bucket.hpp"

namespace sluice::test {
namespace {

/// How often a caller steps back for another one, for some 60 us. It sleeps, and so is soon back,
/// where a thread that yields beside other load waits until that has used its time.
constexpr int most_naps = 10;
constexpr int most_in_a_row = 100;  // then the caller seems to be the only one

}  // namespace

void BrokenStore::draw_whether_it_shows() noexcept {
  const std::lock_guard lock(mutex_);
  acts_ = shows_ == Shows::always || draws_.below(2) == 0;
}

void BrokenStore::let_another_in(Lock& lock) {
  if (in_a_row_ > most_in_a_row) return;
  const std::uint64_t mine = calls_;
  for (int i = 0; i < most_naps && calls_ == mine; ++i) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::nanoseconds{1});
    lock.lock();
  }
}

void BrokenStore::execute(const Plan& plan, Completion done) noexcept {
  draw_whether_it_shows();
  const PlanFault fault = find_fault(plan);
  if (fault.error && !overlooks(fault.error)) {
    if (is(Defect::hint_for_the_impossible) && fault.error == Errc::cost_exceeds_capacity) {
      Outcome outcome;
      outcome.decision.retry_after = Span{1'000'000};
      return done(outcome);
    }
    return done.fail(fault.error, fault.step);
  }
  const auto steps = plan.steps().first(std::min(plan.steps().size(), Plan::max_steps));
  Lock lock(mutex_);
  ++calls_;
  const std::thread::id before = std::exchange(caller_, std::this_thread::get_id());
  in_a_row_ = caller_ == before ? in_a_row_ + 1 : 0;
  const Word now = read_clock();
  Answer answer = plan.id() ? decide_once(plan, now, lock) : decide_steps(steps, now, lock);
  if (is(Defect::shares_scratch)) {
    scratch_ = answer;
    let_another_in(lock);
    if (scratch_.verdicts.size() == answer.verdicts.size()) answer.verdicts = scratch_.verdicts;
  }
  lock.unlock();
  spoil_output(answer);
  deliver(steps, answer, done);
}

void BrokenStore::execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  draw_whether_it_shows();
  const bool reversed = is(Defect::batch_reversed);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::size_t to = reversed ? plans.size() - 1 - i : i;
    execute(plans[i], std::move(done[to]));
  }
}

void BrokenStore::execute_first(std::span<const Plan> plans, std::span<Completion> done) noexcept {
  draw_whether_it_shows();
  if (is(Defect::admits_all_alternatives)) return execute_batch(plans, done);
  const std::size_t first = is(Defect::skips_alternatives) && plans.size() > 1 ? 1 : 0;
  for (std::size_t i = 0; i < first; ++i) done[i].fail(Errc::cancelled);
  Store::execute_first(plans.subspan(first), done.subspan(first));
}

bool BrokenStore::overlooks(std::error_code error) const noexcept {
  return (is(Defect::accepts_duplicates) && error == Errc::duplicate_key) ||
         (is(Defect::accepts_negative_cost) && error == Errc::invalid_cost) ||
         (is(Defect::accepts_empty_keys) && error == Errc::invalid_key) ||
         (is(Defect::accepts_long_plans) && error == Errc::invalid_plan);
}

Word BrokenStore::read_clock() const noexcept {
  if (is(Defect::own_clock)) return to_word(clock_.now()) + 1;
  if (is(Defect::stuck_clock)) return to_word(VirtualClock::default_start);
  return to_word(clock_.now());
}

std::string BrokenStore::key_of(const Step& step) const {
  const std::string_view tag = step.key.tag();
  const std::string_view name = step.key.name();
  if (is(Defect::joins_keys_with_colon))
    return std::string(tag) + ":" + std::string(name) + std::string(step.key.unit());
  if (is(Defect::ignores_units)) return render(Key{tag, name});
  if (is(Defect::cuts_keys_at_zero)) {
    const Key cut{tag.substr(0, tag.find('\0')), name.substr(0, name.find('\0'))};
    return render(cut.with_unit(step.key.unit()));
  }
  if (is(Defect::cuts_long_keys)) {
    return render(Key{tag.substr(0, 256), name.substr(0, 256)}.with_unit(step.key.unit()));
  }
  return render(step.key) +
         (is(Defect::binding_is_another_key) && step.binding != nullptr ? "+" : "");
}

BrokenStore::Answer BrokenStore::decide_once(const Plan& plan, Word now, Lock& lock) {
  const auto steps = plan.steps();
  if (is(Defect::charges_again)) return decide_steps(steps, now, lock);
  const auto name = record_name(*plan.id());
  const std::string_view tag = is(Defect::ids_without_tags) ? "t" : steps[0].key.tag();
  const std::string id = render(Key{tag, {name.data(), name.size()}});
  const auto known = ids_.find(id);
  const Word kept = is(Defect::keeps_ids_for_ever)  ? word_limit
                    : is(Defect::forgets_ids_early) ? id_kept_for.count() / 2
                                                    : id_kept_for.count();
  if (known == ids_.end() || now - known->second.at >= kept) {
    Answer answer = decide_steps(steps, now, lock);
    answer.asked = fingerprint(steps);
    if (answer.allowed || is(Defect::remembers_refusals)) ids_[id] = answer;
    return answer;
  }
  if (known->second.asked != fingerprint(steps) && !is(Defect::replays_for_other_plans)) {
    Answer answer;
    answer.at = now;
    answer.allowed = false;
    answer.verdicts.assign(steps.size(), Verdict::failed(Errc::id_reused));
    for (const Step& step : steps) {
      answer.output.resize(answer.output.size() + output_count(*step.operation, step.table.size()));
    }
    return answer;
  }
  if (is(Defect::charges_half_again) && steps.size() > 1) decide_steps(steps.last(1), now, lock);
  return known->second;
}

Verdict BrokenStore::decide_one(const Step& step, Entry& entry, Answer& answer) const {
  const Word now = answer.at;
  const bool is_bucket = step.operation->kind == StateKind::token_bucket;
  if (is(Defect::forgets_early) && now - entry.written > step.operation->ttl(step.args) / 4) {
    entry.state = {0, 0};
  }
  if (is(Defect::stamp_moves_back) && is_bucket && entry.state[1] > now) {
    entry.state[1] = now - 1'000;
  }
  if (is(Defect::accepts_negative_cost) && is_bucket && step.args[5] < 0) {
    entry.state = {0, 0};
    return {Verdict::allowed, step.args[0], 0, 0};
  }
  if (is(Defect::locked_out_by_clock) && is_bucket &&
      entry.state[1] > now + TokenBucketRule::max_ahead) {
    return {Verdict::refused, 0, entry.state[1] - now, entry.state[1] - now};
  }
  const bool fits =
      entry.kind == StateKind{} || entry.kind == step.operation->kind || is(Defect::takes_any_kind);
  if (!fits) return Verdict::failed(Errc::wrong_kind);
  Effects effects;
  const auto table = is(Defect::ignores_tables) ? step.table.first(0) : step.table;
  const Verdict v = run(*step.operation, entry.state, {step.args, table}, now, effects);
  const auto told = effects.output();
  answer.output.insert(answer.output.end(), told.begin(), told.end());
  answer.output.resize(answer.output.size() + output_count(*step.operation, step.table.size()) -
                       told.size());
  if (v.status == Verdict::allowed) change(entry, step, effects);
  if (is(Defect::charges_on_refusal) && v.status == Verdict::refused) entry.state[0] += 1;
  if (is(Defect::question_charges) && is_bucket && !step.operation->writes && v.remaining > 0) {
    entry.state = {entry.state[0] + step.args[2], now};
  }
  if (is(Defect::refusal_claims_key)) entry.kind = step.operation->kind;
  return spoil(v);
}

void BrokenStore::change(Entry& entry, const Step& step, const Effects& effects) const {
  if (!effects.changes()) return;
  entry.kind = step.operation->kind;
  entry.state.resize(std::max(entry.state.size(), effects.extent()));
  effects.make(entry.state);
  constexpr std::size_t kept = 24;
  if (is(Defect::loses_wide_words) && entry.state.size() > kept) entry.state.resize(kept);
}

/// True if what the step would write is lost.
bool BrokenStore::keeps_back(std::span<const Step> steps, std::size_t index) const noexcept {
  return (is(Defect::ignores_second_step) && index > 0) ||
         (is(Defect::half_applies_mixed_plans) &&
          steps[index].operation->kind != steps[0].operation->kind);
}

BrokenStore::Answer BrokenStore::decide_steps(std::span<const Step> steps, Word now, Lock& lock) {
  Answer answer{now, {}, {}};
  std::array<Entry, Plan::max_steps> next;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Entry before = entries_[key_of(steps[i])];
    next[i] = before;
    const Verdict verdict = decide_one(steps[i], next[i], answer);
    answer.verdicts.push_back(verdict);
    next[i].written = now;
    const bool admits = verdict.status == Verdict::allowed;
    const bool writes_now =
        is(Defect::writes_before_refusal) ||
        (!admits && (before.state != next[i].state || before.kind != next[i].kind));
    if (keeps_back(steps, i)) next[i] = before;
    if (writes_now || is(Defect::locks_per_step)) entries_[key_of(steps[i])] = next[i];
    answer.allowed = answer.allowed && admits;
    if (is(Defect::locks_per_step)) let_another_in(lock);
  }
  if (is(Defect::checks_and_writes_apart)) let_another_in(lock);
  if (!answer.allowed) return answer;
  for (std::size_t i = 0; i < steps.size() && !is(Defect::locks_per_step); ++i) {
    entries_[key_of(steps[i])] = next[i];
  }
  return answer;
}

Verdict BrokenStore::spoil(Verdict v) const noexcept {
  if (is(Defect::remaining_off_by_one) && v.status == Verdict::allowed) v.remaining += 1;
  if (is(Defect::hint_one_tick_short) && v.retry_after > 0) v.retry_after -= 1;
  if (is(Defect::hint_one_tick_long) && v.retry_after > 0) v.retry_after += 1;
  if (is(Defect::reset_in_milliseconds)) v.reset_after = v.reset_after / 1'000 * 1'000;
  return v;
}

void BrokenStore::spoil_output(Answer& answer) const {
  if (is(Defect::drops_output) || (is(Defect::drops_output_of_refusals) && !answer.allowed)) {
    std::ranges::fill(answer.output, 0);
  }
  if (is(Defect::mixes_up_output)) std::ranges::reverse(answer.output);
}

void BrokenStore::deliver(std::span<const Step> steps, const Answer& answer,
                          Completion& done) const noexcept {
  const Time at = to_time(answer.at);
  if (!is(Defect::names_last_step) && !is(Defect::wrong_limit)) {
    return conclude(steps, answer.verdicts, answer.output, at, Source::other, done);
  }
  Outcome outcome;
  const auto keep = [](void* to, const Outcome& from) noexcept {
    auto* copy = static_cast<Outcome*>(to);
    copy->error = from.error;
    copy->decision = from.decision;
  };
  Completion capture(keep, &outcome);
  conclude(steps, answer.verdicts, answer.output, at, Source::other, capture);
  if (is(Defect::names_last_step)) {
    outcome.decision.step = static_cast<std::uint16_t>(steps.size() - 1);
  } else {
    outcome.decision.limit += 1;
  }
  done(outcome);
}

}  // namespace sluice::test
