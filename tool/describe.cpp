// The dispatch by kind, and what all kinds share. See describe.hpp.
#include "tool/describe.hpp"

#include <algorithm>
#include <stdexcept>

#include "cli/text.hpp"
#include "sluice/rules/constant.hpp"
#include "tool/describe_parts.hpp"

namespace sluice::tool {
namespace {

using Describe = void (*)(const Subject&);

/// Without a default: a compiler names the kind that is forgotten.
Describe describer_of(StateKind kind) noexcept {
  switch (kind) {
    case StateKind::shared_sliding_window:
      return describe_shared_sliding_window;
    case StateKind::shared_token_bucket:
      return describe_shared_token_bucket;
    case StateKind::leases:
      return describe_leases;
    case StateKind::slot_lock:
      return describe_slot_lock;
    case StateKind::utilization:
      return describe_utilization;
    case StateKind::gate:
      return describe_gate;
    case StateKind::idempotency_record:
      return describe_idempotency_record;
    case StateKind::wait_line:
      return describe_wait_line;
    case StateKind::token_bucket:
      return describe_token_bucket;
    case StateKind::fixed_window:
      return describe_fixed_window;
    case StateKind::sliding_window_counter:
      return describe_sliding_window_counter;
    case StateKind::sliding_window:
      return describe_sliding_window;
    case StateKind::constant:
      return describe_constant;
    case StateKind::learned_rate:
      return describe_learned_rate;
  }
  return describe_constant;
}

}  // namespace

Answer ask(const Subject& subject, const Operation& row, const Arguments& args,
           std::span<const Word> table) {
  Effects effects;
  Answer answer{run(row, subject.words, {args, table}, subject.now, effects)};
  std::copy(effects.output().begin(), effects.output().end(), answer.output.begin());
  if (answer.verdict.status == -static_cast<Word>(Errc::corrupt_state)) {
    subject.result.is_sound = false;
  }
  return answer;
}

void tell_use(const Subject& subject, const Verdict& verdict, Word most) {
  if (verdict.status < 0) return;
  if (verdict.status == Verdict::refused) {
    subject.result.summary = "closed for " + duration(Span{verdict.retry_after});
    subject.add("closed_until", Moment{subject.now + verdict.retry_after});
  } else {
    subject.result.used = most - verdict.remaining;
    subject.add("used", *subject.result.used);
  }
  if (verdict.reset_after > 0) {
    subject.add("unused_at", Moment{subject.now + verdict.reset_after});
  }
}

void tell_limit(const Subject& subject, Word limit, const Verdict& verdict) {
  subject.result.limit = limit;
  subject.result.verdict = verdict;
  subject.add("limit", limit);
  if (verdict.status < 0) return;
  subject.add("remaining", verdict.remaining);
  if (verdict.status == Verdict::refused) {
    subject.add("next_at", Moment{subject.now + verdict.retry_after});
  }
}

void tell_constant(const Subject& subject, Word limit) {
  const Word cost = subject.given.cost;
  subject.result.verdict = ask(subject, constant_peek, {limit, cost, cost}).verdict;
  subject.result.summary = limit == 0 ? "never" : "unlimited";
  subject.add("limit", limit == 0 ? Value(Word{0}) : Value(subject.result.summary));
}

void summarize(const Subject& subject) {
  Description& d = subject.result;
  if (!d.summary.empty()) return;
  if (!d.used) {
    d.summary = "no request under these limits can be decided";
    return;
  }
  d.summary = thousands(static_cast<std::uint64_t>(*d.used));
  if (d.limit) d.summary += " of " + thousands(static_cast<std::uint64_t>(*d.limit));
  d.summary += " used";
}

std::optional<Word> only_limit(const Given& given) {
  if (given.limits.size() > 1) {
    throw std::invalid_argument("the key has one limit, got " +
                                std::to_string(given.limits.size()));
  }
  return given.limits.empty() ? std::nullopt : std::optional(given.limits[0]);
}

std::string field_text(const Description& description, std::string_view name) {
  for (const Field& each : description.fields) {
    if (each.name == name) return std::get<std::string>(each.value);
  }
  return {};
}

Description describe(const KeyName& name, const StoredState& state, const Given& given, Word now) {
  Description result;
  result.kind = description_of(static_cast<unsigned>(state.kind))->name;
  const Subject subject{name, state.words, given, now, result};
  describer_of(state.kind)(subject);
  if (given.constant) tell_constant(subject, *given.constant);
  if (!result.is_sound) {
    result = {.kind = std::move(result.kind), .is_sound = false};
    result.summary = "words that no rule writes";
    return result;
  }
  summarize(subject);
  return result;
}

}  // namespace sluice::tool
