// The token bucket limiter, on any store. See sluice/rules/token_bucket.hpp for the rule, and
// sluice/rules/token_bucket_reserve.hpp for reservations and refunds.
#pragma once

#include <optional>
#include <string>

#include "sluice/detail/limit_of.hpp"
#include "sluice/limiters/bound_token_bucket.hpp"
#include "sluice/limiters/keyed_limiter.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"

namespace sluice {

/// How a bucket is refilled.
class Refill {
 public:
  /// Token by token, as time passes.
  static Refill greedy() noexcept { return Refill{Span{1}}; }
  /// The tokens of an interval at once, at the multiples of `interval` since 1970. 1 us to 407
  /// days.
  static Refill per_interval(Span interval) noexcept { return Refill{interval}; }

  [[nodiscard]] Span interval() const noexcept { return interval_; }

 private:
  explicit Refill(Span interval) noexcept : interval_(interval) {}

  Span interval_;
};

/// What of a grant comes back that is refunded, or settled below its cost, after its time.
enum class Refund : std::uint8_t {
  /// What has not drained when something was charged last: no interval holds more than the burst
  /// and what drains in it. After `cost / rate` that is nothing.
  undrained,
  /// All of it, however late, for costs that are known late. An interval may then also hold what
  /// was charged too much for calls that were under way when it began.
  in_full,
};

/// Options of a token bucket. Limiters that share buckets must have the same options.
struct BucketOptions {
  Refill refill = Refill::greedy();
  /// The tokens in a bucket that the store does not know yet, when the limiter is made, by
  /// store.clock(); it fills from then on. 0 to the burst; unset: full. A lower value avoids a
  /// burst on every key after a restart.
  std::optional<Word> initial{};
  /// The longest reservation, debt or block: a minute to an hour; unset: a minute, or less if the
  /// quota leaves less room. If the clock is set back by more than this, a bucket restarts and
  /// admits one request at once; if by less, it waits until the clock has caught up.
  std::optional<Span> longest{};
  /// May differ between limiters that share buckets.
  Refund refund = Refund::undrained;
};

/// Limits each key to a rate with a burst. Immutable: one object serves any number of threads.
///
///     TokenBucket bucket{*store, "api", Quota::per_second(100).burst(500)};
///     if (const Decision d = bucket.try_acquire("alice"); !d) retry_later(d.retry_after);
///
/// A key without a name gets the limiter's name. Limiters of one name and rate on one store share
/// their buckets, and the largest of their bursts is the bound; another rate is another bucket.
/// KeyedLimiter has try_acquire() and peek() in every form. Grants that can be taken back are
/// Reservations:
///
///     if (Reservation r = bucket.reserve("alice", 10, 2s)) {
///       sleep_until(r.ready_at());                    // or bucket.cancel("alice", r)
///       bucket.settle("alice", r, tokens_used);   // the true cost
///     }
///
/// A refund gives back what has not drained yet if nothing was charged since, as if it had never
/// been requested, and otherwise part of it or nothing, as the bound of the limit permits; or all
/// of it, with Refund::in_full. Nothing while a later reservation is ahead. A block
/// ends together with a reservation that was made beyond it. settle() charges up to a debt of
/// longest(); units beyond that are not charged. See docs/token_bucket.md.
///
/// Every call has a form that throws std::system_error and one that fills an error_code; the steps
/// at the end are for plans and the asynchronous forms. Every call is one store operation, O(1).
/// Borrows or owns its store: see StoreHandle.
class TokenBucket : public KeyedLimiter<TokenBucket> {
 public:
  static constexpr const char* type_name = "TokenBucket";  ///< in messages of exceptions

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, or if an option is out
  /// of its range.
  TokenBucket(const StoreHandle& store, detail::TextArg name, Quota quota);
  TokenBucket(const StoreHandle& store, detail::TextArg name, Quota quota,
              const BucketOptions& options);

  /// The quota of each key by a table. `longest` is at most what the quota of a key leaves room
  /// for; Refill::per_interval() and `initial` are not possible. Throws std::invalid_argument also
  /// for those, and for a null pointer.
  TokenBucket(const StoreHandle& store, detail::TextArg name,
              std::shared_ptr<const LimitTable<Quota>> quotas, const BucketOptions& options = {});

  /// Reserves units at the first instant at which they are available, if that is at most `max_wait`
  /// ahead, in order of arrival at the store. Does not wait itself. Errc::invalid_argument if
  /// `max_wait` is negative or more than longest().
  Reservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait = Span{0}) const;
  Reservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait,
                      std::error_code& error) const noexcept;

  /// Spends units now that will be available within `max_debt`; later requests wait for the debt to
  /// be paid. Equal to reserve() for a caller that does not wait, so that up to max_debt * rate
  /// units more than the burst may be spent at once.
  Reservation borrow(const KeyArg& key, Cost cost, SpanArg max_debt) const;
  Reservation borrow(const KeyArg& key, Cost cost, SpanArg max_debt,
                     std::error_code& error) const noexcept {
    return reserve(key, cost, max_debt, error);
  }

  /// Spends as many units as are available, from `least` to `most`; Reservation::granted is their
  /// number. Errc::cost_exceeds_capacity if `most` is above the burst, Errc::invalid_argument if
  /// `least` is above `most`, Errc::invalid_cost if one is negative.
  Reservation try_acquire_up_to(const KeyArg& key, Cost most, Cost least = 1) const;
  Reservation try_acquire_up_to(const KeyArg& key, Cost most, Cost least,
                                std::error_code& error) const noexcept;

  /// Fills the bucket, whatever was spent. REQUIRES: earlier reservations are not refunded
  /// afterwards.
  void reset(const KeyArg& key) const;
  void reset(const KeyArg& key, std::error_code& error) const noexcept;
  /// Grants no token until `span` from now; then one is available, and more as the quota says.
  /// Errc::invalid_argument if `span` is negative or more than longest().
  Decision block(const KeyArg& key, SpanArg span) const {
    return decide_as("block", block_step(key, span));
  }
  Decision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept {
    return decide(store(), block_step(key, span), error);
  }
  /// Adds `amount` units, up to a full bucket. Errc::invalid_cost, here and below, if it is
  /// negative or above 2^52.
  Decision reward(const KeyArg& key, Cost amount) const;
  Decision reward(const KeyArg& key, Cost amount, std::error_code& error) const noexcept;
  /// Removes `amount` units, whatever is available, up to a debt of longest().
  Decision penalize(const KeyArg& key, Cost amount) const {
    return decide_as("penalize", penalize_step(key, amount));
  }
  Decision penalize(const KeyArg& key, Cost amount, std::error_code& error) const noexcept {
    return decide(store(), penalize_step(key, amount), error);
  }

  /// The step of try_acquire(), for a plan of several steps.
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1) const noexcept {
    return plain_ ? simple(token_bucket_acquire, key, cost)
                  : shaped(token_bucket_reserve, key, 0, cost.value());
  }
  /// The step of peek(): in a plan, a condition that charges nothing.
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept {
    return plain_ ? simple(token_bucket_peek, key, cost)
                  : shaped(token_bucket_peek_reserve, key, 0, cost.value());
  }
  /// The steps of the calls above. Of the first two, reservation() makes a Reservation.
  [[nodiscard]] Step reserve_step(const Key& key, Cost cost, SpanArg max_wait) const noexcept {
    return shaped(token_bucket_reserve, key, max_wait.count(), cost.value());
  }
  [[nodiscard]] Step up_to_step(const Key& key, Cost most, Cost least) const noexcept {
    return shaped(token_bucket_reserve_some, key, least.value(), most.value());
  }
  [[nodiscard]] Step refund_step(const Key& key, const Reservation& grant,
                                 Cost amount) const noexcept;
  /// The step of settle() if it charges `units` more.
  [[nodiscard]] Step charge_step(const Key& key, const Reservation& /*grant*/,
                                 Cost units) const noexcept {
    return penalize_step(key, units);
  }
  [[nodiscard]] Step reset_step(const Key& key) const noexcept {
    return set(key, TokenBucketReserve::Change::reset, 0);
  }
  [[nodiscard]] Step block_step(const Key& key, SpanArg span) const noexcept {
    return set(key, TokenBucketReserve::Change::block, span.count());
  }
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    return set(key, TokenBucketReserve::Change::reward, amount.value());
  }
  [[nodiscard]] Step penalize_step(const Key& key, Cost amount) const noexcept {
    return set(key, TokenBucketReserve::Change::charge, amount.value());
  }

  /// What a plan's reserve_step() or up_to_step() has granted: of the decision on that step and its
  /// output words.
  [[nodiscard]] static Reservation reservation(const Decision& decision,
                                               std::span<const Word> output,
                                               Cost /*cost*/ = 0) noexcept {
    if (output.empty()) return {decision, 0};
    return {decision, output[0], output.subspan(1)};
  }

  /// This limiter for one key that is asked often: it skips the look-up where the store supports
  /// that. For a key that is seldom asked among many it does not pay: the bound object then misses
  /// the processor's caches as well. Throws std::system_error: Errc::invalid_key, or
  /// Errc::invalid_argument of a bucket with a table.
  [[nodiscard]] BoundTokenBucket at(const KeyArg& key) const;

  /// With a table, that of everyone.
  [[nodiscard]] Quota quota() const noexcept { return quota_.everyone().reduced(); }
  [[nodiscard]] Quota quota(const Key& key) const noexcept { return quota_.of(key).reduced(); }
  /// The longest reservation, debt or block. With a table, that of everyone.
  [[nodiscard]] Span longest() const noexcept { return Span{shape_[5]}; }

  // For the library; see sluice/limiters/detail/token_bucket.hpp.
  struct Verbs;
  [[nodiscard]] bool has_table() const noexcept { return quota_.has_table(); }

 private:
  [[nodiscard]] Step simple(const Operation& operation, const Key& key, Cost cost) const noexcept {
    Step result{&operation, named(key), args_};
    result.args[4] = cost.value();
    if (has_table()) [[unlikely]]
      count_with_table(result, key, cost);
    return result;
  }
  [[nodiscard]] Step shaped(const Operation& operation, const Key& key, Word first,
                            Word second) const noexcept {
    Step result{&operation, named(key), shape_};
    if (has_table()) result.args = shape_of_table(key);
    result.args[6] = first;
    result.args[7] = second;
    return detail::by_limit(result);
  }
  [[nodiscard]] Step set(const Key& key, TokenBucketReserve::Change change,
                         Word amount) const noexcept {
    const bool is_constant = detail::is_constant(quota_.of(key).capacity());
    if (is_constant && change == TokenBucketReserve::Change::block) {  // checked as a wait is
      return shaped(token_bucket_peek_reserve, key, amount, 0);
    }
    return shaped(token_bucket_adjust, key, static_cast<Word>(change), amount);
  }

  void count_with_table(Step& simple, const Key& key, Cost cost) const noexcept;
  [[nodiscard]] Arguments shape_of_table(const Key& key) const noexcept;

  detail::LimitOf<Quota> quota_;
  Refund refund_ = Refund::undrained;
  bool plain_ = true;  // acquire_step() and peek_step() use the plain form of the rule
  Arguments args_{};   // of the plain form; each call sets the last one, the cost
  Arguments shape_{};  // of the full form; each call sets the last two
};

}  // namespace sluice

#include "sluice/limiters/detail/token_bucket.hpp"
