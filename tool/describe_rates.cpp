// Descriptions of the kinds whose units come back with time at a rate.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "cli/text.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/rules/learned_rate.hpp"
#include "sluice/rules/shared_token_bucket.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"
#include "tool/describe_parts.hpp"
#include "tool/unit.hpp"

namespace sluice::tool {
namespace {

/// As long as a limiter of any options may look ahead, and as this quota allows.
Word longest_of(const Quota& quota, Word interval) {
  const Word room = (word_limit - quota.capacity() * quota.period()) / quota.refill();
  return std::clamp(room - interval, Word{0}, TokenBucketReserve::max_longest);
}

Verdict ask_bucket(const Subject& subject, const BucketUnit& rate, Word cost) {
  const Quota& quota = rate.quota;
  return ask(subject, token_bucket_peek_reserve,
             {quota.capacity(), quota.refill(), quota.period(), rate.interval, 0,
              longest_of(quota, rate.interval), 0, cost})
      .verdict;
}

/// A burst in which every level is within the limit.
std::optional<Quota> widest_of(const BucketUnit& rate) {
  const Quota& quota = rate.quota;
  const Word times = word_limit / quota.refill();  // that far can a level drain
  if (rate.interval >= times) return std::nullopt;
  const Word ahead =
      rate.interval + std::min(TokenBucketReserve::max_longest, (times - rate.interval) / 2);
  const Word units = std::min(Quota::bound - quota.refill(), word_limit - ahead * quota.refill());
  return units < quota.period() ? std::nullopt : std::optional(quota.burst(units / quota.period()));
}

/// The kernel accepts more than a Quota can be.
std::string quota_text(Word capacity, Word refill, Word period) try {
  return to_string(Quota::per(refill, Span{period}).burst(capacity));
} catch (const std::invalid_argument&) {
  return fmt::format("{}/{}us:{}", refill, period, capacity);
}

double per_second(Word millionths) { return static_cast<double>(millionths) / 1e6; }

}  // namespace

std::optional<Quota> bucket_quota(const KeyName& name, const Given& given, const Quota& rate) {
  if (given.quota) {
    if (given.quota->refill() != rate.refill() || given.quota->period() != rate.period()) {
      throw std::invalid_argument("the key is counted in " + name.unit +
                                  ", which is not the rate of " + to_string(*given.quota));
    }
    return given.quota;
  }
  const std::optional<Word> burst = only_limit(given);
  return burst ? std::optional(rate.burst(*burst)) : std::nullopt;
}

/// Of a key with a table, by the quota that is given.
void describe_bucket_of_table(const Subject& subject, Word unit) {
  subject.add("unit", subject.name.unit);
  if (!subject.given.quota) {
    subject.result.summary = "counted with a table of quotas: give its --quota";
    return;
  }
  const Quota quota = subject.given.quota->counted_in(Span{unit});
  const Verdict verdict = ask_bucket(subject, {quota, 1}, subject.given.cost);
  tell_use(subject, verdict, quota.capacity());
  tell_limit(subject, quota.capacity(), verdict);
}

void describe_token_bucket(const Subject& subject) {
  if (const Word unit = table_unit_in(subject.name.unit)) {
    return describe_bucket_of_table(subject, unit);
  }
  const std::optional<BucketUnit> rate = bucket_in(subject.name.unit);
  const auto widest = rate ? widest_of(*rate) : std::nullopt;
  if (!widest) {
    subject.result.summary = "its key names no rate";
    return;
  }
  subject.add("rate", subject.name.unit);
  tell_use(subject, ask_bucket(subject, {*widest, rate->interval}, 0), widest->capacity());
  if (const std::optional<Quota> quota = bucket_quota(subject.name, subject.given, rate->quota)) {
    tell_limit(subject, quota->capacity(),
               ask_bucket(subject, {*quota, rate->interval}, subject.given.cost));
  }
}

void describe_shared_token_bucket(const Subject& subject) {
  const auto answer = [&](Word cost) {
    return ask(subject, shared_token_bucket_peek,
               {word_limit, cost, SharedTokenBucketRule::max_keep_alive});
  };
  const auto [verdict, output] = answer(0);
  if (verdict.status < 0) {
    subject.result.summary = "no quota";
    return;
  }
  const auto [version, capacity, refill, period] =
      std::tuple(output[0], output[1], output[2], output[3]);
  subject.add("version", version);
  if (detail::is_constant(capacity)) {
    tell_constant(subject, capacity);
    subject.add("quota", subject.result.summary);
    return;
  }
  subject.add("quota", quota_text(capacity, refill, period));
  tell_use(subject, verdict, capacity);
  tell_limit(subject, capacity, answer(subject.given.cost).verdict);
}

void describe_learned_rate(const Subject& subject) {
  using Rule = LearnedRateRule;
  // Bounds that leave the rate as it is stored.
  const auto answer = [&](Word cost) {
    return ask(subject, learned_rate_peek,
               {word_limit, 1, 1, Rule::max_rate, Rule::max_forget, cost});
  };
  const auto [verdict, output] = answer(subject.given.cost);
  if (verdict.status < 0) return;
  std::array<Word, sizeof(Rule::State) / sizeof(Word)> words{};
  std::copy_n(subject.words.begin(), std::min(words.size(), subject.words.size()), words.begin());
  const auto state = detail::unpack<Rule::State>(words);
  subject.result.verdict = verdict;
  subject.result.summary = fmt::format("{:.4g}/s", per_second(output[0]));
  subject.add("rate_per_second", per_second(output[0]));
  if (output[1] > 0) subject.add("peak_per_second", per_second(output[1]));
  subject.add("remaining", verdict.remaining);
  if (state.fell > 0) subject.add("fell_at", Moment{state.fell});
  if (state.told_until > subject.now) {
    subject.add("told_per_second", per_second(state.ceiling));
    subject.add("told_until", Moment{state.told_until});
  }
  if (state.closed > subject.now) {
    subject.result.summary = "closed for " + duration(Span{state.closed - subject.now});
    subject.add("closed_until", Moment{state.closed});
  } else if (verdict.status == Verdict::refused) {
    subject.add("next_at", Moment{subject.now + verdict.retry_after});
  }
}

void describe_slot_lock(const Subject& subject) {
  const Verdict verdict = ask(subject, slot_lock_peek, {1, 1, 0}).verdict;
  if (verdict.status < 0) return;
  subject.result.limit = 1;
  subject.result.used = verdict.status == Verdict::refused ? 1 : 0;
  subject.result.verdict = verdict;
  if (verdict.status == Verdict::refused) {
    subject.result.summary = "next slot in " + duration(Span{verdict.retry_after});
    subject.add("next_at", Moment{subject.now + verdict.retry_after});
  } else {
    subject.result.summary = "a slot is free";
  }
}

}  // namespace sluice::tool
