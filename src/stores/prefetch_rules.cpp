#include "src/stores/prefetch_rules.hpp"

#include <algorithm>

#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/shared_token_bucket_reserve.hpp"
#include "sluice/rules/sliding_window_counter.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"

namespace sluice::prefetch {
namespace {

using Shape = TokenBucketReserve::Shape;
using Role = Argument::Role;

bool is_shared(const Step& step) noexcept {
  return step.operation->kind == StateKind::shared_token_bucket;
}

/// The shape of the full form: that of the step, or that of a plain bucket.
Shape shape_of(const Step& step) noexcept {
  const Arguments& a = step.args;
  if (step.operation != &token_bucket_acquire) return detail::unpack<Shape>(a);
  const Word room = (word_limit - a[0] * a[2]) / a[1] - 1;
  return {a[0], a[1], a[2], 1, 0, std::clamp(room, Word{0}, TokenBucketRule::max_ahead)};
}

Step token_step(const Operation& operation, const Step& pattern, Word first, Word second) noexcept {
  const Shape s = shape_of(pattern);
  return {&operation,
          pattern.key,
          {s.capacity, s.refill, s.period, s.interval, s.full_at, s.longest, first, second}};
}

}  // namespace

std::optional<Request> request_of(const Step& step) noexcept {
  const Operation* const row = step.operation;
  if (row != &token_bucket_acquire && row != &token_bucket_reserve &&
      row != &shared_token_bucket_acquire && row != &shared_token_bucket_reserve &&
      row != &fixed_window_acquire && row != &sliding_window_counter_acquire) {
    return std::nullopt;
  }
  const Word cost = step.args[row->arguments.find(Role::cost)->index];
  if (cost == 0) return std::nullopt;
  const Argument* const wait = row->arguments.find(Role::wait);
  return Request{cost, wait != nullptr ? step.args[wait->index] : 0, wait != nullptr};
}

static bool is_bucket_refund(const Operation& row) noexcept {
  return &row == &token_bucket_refund || &row == &token_bucket_refund_in_full;
}

bool changes_limit(const Operation& row) noexcept {
  return &row == &token_bucket_adjust || &row == &shared_token_bucket_adjust ||
         &row == &shared_token_bucket_configure || &row == &fixed_window_adjust ||
         &row == &fixed_window_reset || &row == &fixed_window_refund ||
         &row == &fixed_window_block || &row == &sliding_window_counter_adjust ||
         &row == &sliding_window_counter_reset || &row == &sliding_window_counter_block ||
         is_bucket_refund(row) || &row == &shared_token_bucket_refund;
}

bool ends_grants(const Step& step) noexcept {
  const Operation* const row = step.operation;
  const auto is_ending = [](Word change) {
    return change == static_cast<Word>(TokenBucketReserve::Change::reset) ||
           change == static_cast<Word>(TokenBucketReserve::Change::block);
  };
  if (row == &token_bucket_adjust) return is_ending(step.args[6]);
  if (row == &shared_token_bucket_adjust) return is_ending(step.args[1]);
  return row == &shared_token_bucket_configure || row == &fixed_window_reset ||
         row == &fixed_window_block || row == &sliding_window_counter_reset ||
         row == &sliding_window_counter_block;
}

bool sets_quota(const Operation& row) noexcept { return &row == &shared_token_bucket_configure; }

bool changed_nothing(const Plan& plan, const Outcome& outcome) noexcept {
  const auto steps = plan.steps();
  return steps.size() == 1 && sets_quota(*steps[0].operation) && !outcome.error &&
         outcome.output.size() > 1 && outcome.output[1] == 0;
}

std::optional<RefundAsked> refund_of(const Step& step) noexcept {
  const Arguments& a = step.args;
  if (is_bucket_refund(*step.operation)) return RefundAsked{a[5], a[6], a[7], 0};
  if (step.operation == &shared_token_bucket_refund) return RefundAsked{a[3], a[4], a[5], a[6]};
  return std::nullopt;
}

Word limit_of(const Step& step) noexcept { return step.args[0]; }

Word longest_of(const Step& step) noexcept {
  if (is_shared(step)) return SharedTokenBucketReserve::longest;
  return step.operation->kind == StateKind::token_bucket ? shape_of(step).longest : 0;
}

Step take_step(const Step& pattern, const Ask& ask) noexcept {
  if (pattern.operation->kind == StateKind::token_bucket) {
    return ask.max_wait > 0 ? token_step(token_bucket_reserve, pattern, ask.max_wait, ask.most)
                            : token_step(token_bucket_reserve_some, pattern, ask.least, ask.most);
  }
  Step step{pattern.operation, pattern.key, pattern.args};
  if (is_shared(pattern)) {
    step.operation = &shared_token_bucket_reserve;
    step.args[step.operation->arguments.find(Role::wait)->index] = ask.max_wait;
  }
  step.args[step.operation->arguments.find(Role::cost)->index] = ask.most;
  return step;
}

Taken taken_by(const Step& pattern, const Ask& ask, const Outcome& outcome) noexcept {
  const auto out = outcome.output;
  const Word clear = outcome.decision.reset_after.count();
  Taken taken;
  switch (pattern.operation->kind) {
    case StateKind::token_bucket:
      return {out[0], 0, word_limit, out[1], out[2]};
    case StateKind::shared_token_bucket:
      return {out[0], out[5], word_limit, out[1], out[2], out[3], out[4]};
    case StateKind::fixed_window:  // until the end of the window
      taken.lives = clear;
      break;
    default:  // until the end of the window, a span before it is no longer counted
      taken.lives = clear - pattern.args[1];
  }
  taken.units = ask.most;
  return taken;
}

std::optional<Step> refund_step(const Step& pattern, const Taken& taken, Word granted, Word amount,
                                Word at, Word age) noexcept {
  const Arguments& a = pattern.args;
  switch (pattern.operation->kind) {
    case StateKind::token_bucket: {
      const Shape s = shape_of(pattern);
      // What has drained does not come back.
      if (age / s.period >= granted / s.refill + 1) return std::nullopt;
      return Step{
          &token_bucket_refund,
          pattern.key,
          {s.capacity, s.refill, s.period, s.interval, granted, amount, taken.level, taken.stamp}};
    }
    case StateKind::shared_token_bucket:
      return Step{
          &shared_token_bucket_refund,
          pattern.key,
          {a[0], granted, a[2], amount, taken.level, taken.stamp, taken.version, taken.spent}};
    case StateKind::fixed_window: {
      const Word end = at + taken.lives;
      Word begin = a[1] > 0 ? end - a[1] : 0;
      for (std::size_t i = 2; a[1] == 0 && i < 7; ++i) begin = a[i] < end ? a[i] : begin;
      return Step{&fixed_window_refund, pattern.key, {a[0], begin, end, amount}};
    }
    default:
      return Step{
          &sliding_window_counter_adjust,
          pattern.key,
          {a[0], a[1], amount, static_cast<Word>(SlidingWindowCounterRule::Change::refund), at}};
  }
}

std::size_t write_output(const Step& step, const Taken* taken, Word capacity,
                         std::span<Word> output) noexcept {
  const Operation* const row = step.operation;
  const std::size_t count = output_count(*row, step.table.size());
  std::fill_n(output.begin(), count, 0);
  if (row == &shared_token_bucket_reserve) output[5] = capacity;
  if (row == &shared_token_bucket_acquire) output[1] = capacity;
  if (taken == nullptr) return count;
  if (row == &token_bucket_reserve || row == &shared_token_bucket_reserve) {
    output[0] = request_of(step)->cost;
    output[1] = taken->level;
    output[2] = taken->stamp;
  }
  if (row == &shared_token_bucket_reserve) {
    output[3] = taken->version;
    output[4] = taken->spent;
  }
  if (row == &shared_token_bucket_acquire) output[0] = taken->version;
  return count;
}

}  // namespace sluice::prefetch
