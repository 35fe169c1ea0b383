// A rate that nobody knows, learned from what an API refuses, on any store. See
// sluice/rules/learned_rate.hpp for the rule.
#pragma once

#include <optional>

#include "sluice/limiters/keyed_limiter.hpp"
#include "sluice/rules/learned_rate.hpp"

namespace sluice {

/// Options of a learned rate. Its quotas are rates, neither Quota::never() nor Quota::unlimited();
/// their bursts mean nothing. Limiters that share a key may differ.
struct LearnedRateOptions {
  Quota initial = Quota::per_second(10);  ///< of a key of which nothing is known; least to most
  Quota least = Quota::per_minute(6);     ///< a millionth a second or more
  Quota most = Quota::per_second(1'000);  ///< a million a second or less
  /// A key that was not used for so long is as new: a minute to 365 days.
  Span forget = std::chrono::hours{1};
};

/// What an API says of its limit. A limit has a span; a rest has a reset.
struct ToldLimit {
  std::optional<Word> limit{};      ///< units in `span`: 1 or more
  Span span{0};                     ///< above zero if there is a limit
  std::optional<Word> remaining{};  ///< units until `reset`: 0 to the limit
  Span reset{0};                    ///< from now; zero or longer
};

/// What a key has learned, in millionths of a unit a second.
struct LearnedSpeed {
  Word rate = 0;
  Word peak = 0;  ///< where it fell last, or what the API told; 0: neither yet
};

/// Limits each key to a rate that is learned: it grows while calls succeed, and falls when one is
/// refused, once for all refusals of one episode. Immutable: one object serves any number of
/// threads.
///
///     LearnedRate rate{*store, "partner"};
///     Call call({{rate, "key"}}, {.attempts = 5});
///     call([&] { ... throw RateLimited(); ... });   // the Call reports the refusal
///
/// or without a Call:
///
///     if (const Reservation grant = rate.reserve("key", 1)) {
///       if (client.get(url).status == 429) rate.limited("key", grant);
///     }
///
/// A key without a name gets the limiter's name. Limiters of one name on one store share what is
/// learned: a fleet learns once. KeyedLimiter has try_acquire() and peek() in every form. A request
/// of any cost up to 2^40 is granted once the rate has brought its units, of which twice the cost,
/// or a tenth of a second, are saved; Errc::cost_exceeds_capacity if the least rate takes more than
/// 50 days for them. Units are spaced in whole microseconds.
///
/// A refund gives back the time of its units at the present rate; settle() charges up to a debt of
/// a minute. Neither says that the API has refused: that is limited(). Each call is O(1), one store
/// operation. Borrows or owns its store: see StoreHandle. See docs/learned_rate.md.
class LearnedRate : public KeyedLimiter<LearnedRate> {
 public:
  static constexpr const char* type_name = "LearnedRate";  ///< in messages of exceptions

  static constexpr Span max_block{LearnedRateRule::max_block};  ///< 365 days

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, or if an option is out
  /// of its range.
  LearnedRate(const StoreHandle& store, detail::TextArg name,
              const LearnedRateOptions& options = {});

  /// try_acquire() whose grant can be reported, settled or taken back.
  Reservation reserve(const KeyArg& key, Cost cost) const;
  Reservation reserve(const KeyArg& key, Cost cost, std::error_code& error) const noexcept;

  /// The API has refused the call that was granted this. The rate falls, unless it fell after the
  /// grant. The units are not given back. REQUIRES: the reservation was granted.
  Decision limited(const KeyArg& key, const Reservation& grant) const {
    return decide_as("limited", limited_step(key, grant));
  }
  Decision limited(const KeyArg& key, const Reservation& grant,
                   std::error_code& error) const noexcept {
    return decide(store(), limited_step(key, grant), error);
  }

  /// The API has told its limit: the rate is at most that until another is told or
  /// LearnedRateOptions::forget has passed, and returns to it quickly. No more than `remaining` is
  /// granted before `reset`; until then, other rests of the same key only lower it.
  /// Errc::invalid_argument if the members contradict each other; nothing is then changed.
  /// http::lower() calls this with the headers of a response.
  Decision told(const KeyArg& key, const ToldLimit& told) const {
    return decide_as("told", told_step(key, told));
  }
  Decision told(const KeyArg& key, const ToldLimit& told, std::error_code& error) const noexcept {
    return decide(store(), told_step(key, told), error);
  }

  /// What the key has learned; changes nothing.
  LearnedSpeed learned(const KeyArg& key) const;
  LearnedSpeed learned(const KeyArg& key, std::error_code& error) const noexcept;

  /// Grants nothing until `span` from now, 0 to max_block; an earlier block that ends later stays.
  Decision block(const KeyArg& key, SpanArg span) const {
    return decide_as("block", block_step(key, span));
  }
  Decision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept {
    return decide(store(), block_step(key, span), error);
  }

  /// Forgets what was learned.
  void reset(const KeyArg& key) const;
  void reset(const KeyArg& key, std::error_code& error) const noexcept;

  /// The steps of the calls above, for plans.
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1) const noexcept {
    return step(learned_rate_acquire, key, cost.value());
  }
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept {
    return step(learned_rate_peek, key, cost.value());
  }
  [[nodiscard]] Step limited_step(const Key& key, const Reservation& grant) const noexcept {
    return step(learned_rate_limited, key, grant.granted, to_word(grant.at));
  }
  [[nodiscard]] Step told_step(const Key& key, const ToldLimit& told) const noexcept;
  [[nodiscard]] Step refund_step(const Key& key, const Reservation& /*grant*/,
                                 Cost amount) const noexcept {
    return adjust(key, amount, LearnedRateRule::Change::refund);
  }
  [[nodiscard]] Step charge_step(const Key& key, const Reservation& /*grant*/,
                                 Cost units) const noexcept {
    return adjust(key, units, LearnedRateRule::Change::charge);
  }
  [[nodiscard]] Step block_step(const Key& key, SpanArg span) const noexcept {
    return step(learned_rate_block, key, span.count());
  }
  [[nodiscard]] Step reset_step(const Key& key) const noexcept {
    return {&learned_rate_reset, named(key), {pace_.limit}};
  }

  /// What a plan's acquire_step() for `cost` has granted: of the decision on it.
  [[nodiscard]] static Reservation reservation(const Decision& decision,
                                               std::span<const Word> /*output*/,
                                               Cost cost) noexcept {
    return {decision, cost.value()};
  }

  // For the library; see sluice/limiters/detail/learned_rate.hpp.
  struct Verbs;

 private:
  [[nodiscard]] Step step(const Operation& operation, const Key& key, Word first,
                          Word second = 0) const noexcept {
    return {&operation,
            named(key),
            {pace_.limit, pace_.initial, pace_.least, pace_.most, pace_.forget, first, second}};
  }
  [[nodiscard]] Step adjust(const Key& key, Cost amount,
                            LearnedRateRule::Change change) const noexcept {
    return step(learned_rate_adjust, key, amount.value(), static_cast<Word>(change));
  }

  LearnedRateRule::Pace pace_;
};

}  // namespace sluice

#include "sluice/limiters/detail/learned_rate.hpp"
