// The learned rate: construction, calls, and how one waits for it.
#include "sluice/limiters/learned_rate.hpp"

#include <algorithm>
#include <stdexcept>

#include "src/limiters/keyed_limiter.hpp"
#include "src/limiters/or_throw.hpp"
#include "src/waiting/claim_of.hpp"

namespace sluice {
namespace {

using Rule = LearnedRateRule;

__extension__ typedef __int128 Wide;

/// floor(units * 10^12 / span), at most one more than the largest rate.
Word rate_of(Word units, Word span) noexcept {
  return static_cast<Word>(
      std::min<Wide>(Wide{units} * 1'000'000'000'000 / span, Rule::max_rate + 1));
}

Word rate_of(const Quota& quota) noexcept { return rate_of(quota.refill(), quota.period()); }

void require_rate(const char* option, const Quota& quota) {
  if (!quota.is_never() && !quota.is_unlimited()) return;
  throw std::invalid_argument(std::string("learned rate: ") + option +
                              " must be a rate, 1 to 10^12 millionths a second, got " +
                              to_string(quota));
}

Rule::Pace valid_pace(const LearnedRateOptions& options) {
  require_rate("initial", options.initial);
  require_rate("least", options.least);
  require_rate("most", options.most);
  const Word initial = rate_of(options.initial);
  const Word least = rate_of(options.least);
  const Word most = rate_of(options.most);
  if (least < 1 || least > initial || initial > most || most > Rule::max_rate) {
    throw std::invalid_argument(
        "learned rate: initial must be least to most, and those 1 to 10^12 millionths a second, "
        "got initial " +
        to_string(options.initial) + ", least " + to_string(options.least) + ", most " +
        to_string(options.most));
  }
  const Word forget = options.forget.count();
  if (forget < Rule::min_forget || forget > Rule::max_forget) {
    throw std::invalid_argument("learned rate: forget must be " + std::to_string(Rule::min_forget) +
                                " us to " + std::to_string(Rule::max_forget) + " us, got " +
                                std::to_string(forget) + " us");
  }
  // What can be saved at the highest rate.
  const Word limit = std::max<Word>(2, most / 1'000'000 * Rule::saved / 1'000'000);
  return {limit, initial, least, most, forget};
}

/// Of what an API tells: 0 if it tells no limit, -1 if it contradicts itself.
Word ceiling_of(const ToldLimit& told) noexcept {
  const bool is_rest = !told.remaining || (*told.remaining >= 0 && *told.remaining < word_limit);
  if (!is_rest || told.reset < Span{0}) return -1;
  if (!told.limit) return 0;
  const bool fits = *told.limit >= 1 && *told.limit <= word_limit && told.span > Span{0} &&
                    told.remaining.value_or(0) <= *told.limit;
  return fits ? std::clamp<Word>(rate_of(*told.limit, told.span.count()), 1, Rule::max_rate) : -1;
}

}  // namespace

LearnedRate::LearnedRate(const StoreHandle& store, detail::TextArg name,
                         const LearnedRateOptions& options)
    : KeyedLimiter(store, name, ""), pace_(valid_pace(options)) {}

Step LearnedRate::told_step(const Key& key, const ToldLimit& told) const noexcept {
  Step result = step(learned_rate_told, key, ceiling_of(told), told.remaining.value_or(word_limit));
  result.args[7] = std::min<Span>(told.reset, max_block).count();
  return result;
}

Reservation LearnedRate::reserve(const KeyArg& key, Cost cost,
                                 std::error_code& error) const noexcept {
  return detail::run(Verbs::reserve(*this, key, cost), error);
}

Reservation LearnedRate::reserve(const KeyArg& key, Cost cost) const {
  return detail::or_throw(
      {type_name, "reserve"}, [&] { return acquire_step(key, cost); },
      [&](auto& error) { return reserve(key, cost, error); });
}

LearnedSpeed LearnedRate::learned(const KeyArg& key, std::error_code& error) const noexcept {
  return detail::run(Verbs::learned(*this, key), error);
}

LearnedSpeed LearnedRate::learned(const KeyArg& key) const {
  return detail::or_throw(
      {type_name, "learned"}, [&] { return peek_step(key, 0); },
      [&](auto& error) { return learned(key, error); });
}

void LearnedRate::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void LearnedRate::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

struct LearnedRate::Verbs::Claimed final : detail::ClaimOf<LearnedRate, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key(), cost()); }
};

std::unique_ptr<detail::ClaimedLimit> LearnedRate::Verbs::claim(const LearnedRate& limiter,
                                                                const Key& key, Cost cost) {
  return std::make_unique<Claimed>(limiter, key, cost);
}

template class KeyedLimiter<LearnedRate>;

}  // namespace sluice
