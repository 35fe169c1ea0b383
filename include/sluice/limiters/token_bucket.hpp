// The token bucket limiter, on any store. See sluice/rules/token_bucket.hpp for the rule, and
// sluice/rules/token_bucket_reserve.hpp for its full form.
#pragma once

#include <optional>
#include <string>

#include "sluice/detail/bound_token_bucket.hpp"
#include "sluice/detail/keyed_limiter.hpp"
#include "sluice/reservation.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"

namespace sluice {

/// How tokens come back.
class Refill {
 public:
  /// One by one, as time passes.
  static Refill greedy() noexcept { return Refill{Span{1}}; }
  /// All that an interval brings at once, at the multiples of `interval` since 1970. 1 us to 407
  /// days.
  static Refill per_interval(Span interval) noexcept { return Refill{interval}; }

  [[nodiscard]] Span interval() const noexcept { return interval_; }

 private:
  explicit Refill(Span interval) noexcept : interval_(interval) {}

  Span interval_;
};

/// What a token bucket may be beyond its quota. Limiters that share buckets have the same options.
struct BucketOptions {
  Refill refill = Refill::greedy();
  /// Tokens that a bucket has when the limiter is made, if the store knows nothing of it; it fills
  /// from then on. 0 to the burst; unset: full. So a restart need not begin with a burst on every
  /// key. It is counted from store.clock().
  std::optional<Word> initial{};
  /// How far ahead of its clock a bucket may be taken: the longest reservation, debt or block. A
  /// minute to an hour; unset: a minute, or what the quota leaves room for. If the clock is set
  /// back by more, a bucket starts anew, with one request at once; if by less, it waits until the
  /// clock has caught up.
  std::optional<Span> longest{};
};

/// Limits each key to a quota. Immutable: one object serves any number of threads.
///
///     TokenBucket bucket{*store, "api", Quota::per_second(100).burst(500)};
///     if (const Decision d = bucket.try_acquire("alice"); !d) retry_later(d.retry_after);
///
/// A key without a name takes the limiter's. Limiters of one name and rate on one store share their
/// buckets, and the largest of their bursts is the bound; another rate is another bucket.
/// try_acquire() and peek(), in every form, are those of KeyedLimiter. What can be given back is a
/// Reservation:
///
///     if (Reservation r = bucket.reserve("alice", 10, 2s)) {
///       sleep_until(r.at());                      // or bucket.cancel("alice", r)
///       bucket.settle("alice", r, tokens_used);   // the true cost
///     }
///
/// Every call has a form that throws std::system_error and one that fills an error_code; the steps
/// at the end serve plans and the asynchronous forms. Every call is one store operation, O(1).
/// Borrows or owns its store: see StoreHandle.
class TokenBucket : public KeyedLimiter<TokenBucket> {
 public:
  static constexpr const char* type_name = "TokenBucket";  ///< in texts of exceptions

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, or if an option is out
  /// of its range.
  TokenBucket(const StoreHandle& store, detail::TextArg name, Quota quota);
  TokenBucket(const StoreHandle& store, detail::TextArg name, Quota quota,
              const BucketOptions& options);

  /// A grant for which to wait `max_wait` at most, in order of arrival at the store. It never waits
  /// itself. Errc::invalid_argument if `max_wait` is negative or more than longest().
  Reservation reserve(const Key& key, Cost cost, Span max_wait) const;
  Reservation reserve(const Key& key, Cost cost, Span max_wait,
                      std::error_code& error) const noexcept;

  /// Spends now what will be there within `max_debt` and pays it off later: others wait for it. The
  /// same as reserve() of a caller who does not wait, so that up to max_debt * rate units more than
  /// the burst may go out at once.
  Reservation borrow(const Key& key, Cost cost, Span max_debt) const;
  Reservation borrow(const Key& key, Cost cost, Span max_debt,
                     std::error_code& error) const noexcept {
    return reserve(key, cost, max_debt, error);
  }

  /// Spends as much as is there, from `least` to `most`; Reservation::granted says how much.
  /// Errc::cost_exceeds_capacity if `most` is above the burst, Errc::invalid_argument if `least` is
  /// above `most`, Errc::invalid_cost if one is negative.
  Reservation try_acquire_up_to(const Key& key, Cost most, Cost least = 1) const;
  Reservation try_acquire_up_to(const Key& key, Cost most, Cost least,
                                std::error_code& error) const noexcept;

  /// Gives back what a reservation charged, as far as that leaves the limit standing: all that has
  /// not drained yet if nobody was charged since, as if it had never been asked for; part of it or
  /// nothing if others were. Answers how many whole units came back; the reservation is then over.
  /// A block goes with what was reserved beyond it. See docs/token_bucket.md.
  Word cancel(const Key& key, Reservation& reservation) const;
  Word cancel(const Key& key, Reservation& reservation, std::error_code& error) const noexcept;

  /// Gives back `amount` of it, in the same way. Errc::invalid_argument if it is more than granted,
  /// Errc::invalid_cost, here and in settle(), if it is negative.
  Word refund(const Key& key, Reservation& reservation, Cost amount) const;
  Word refund(const Key& key, Reservation& reservation, Cost amount,
              std::error_code& error) const noexcept;

  /// After an estimate the true cost: refunds the difference, or charges it whatever is there, up
  /// to a debt of longest(), beyond which nothing more is owed.
  Settlement settle(const Key& key, Reservation& reservation, Cost true_cost) const;
  Settlement settle(const Key& key, Reservation& reservation, Cost true_cost,
                    std::error_code& error) const noexcept;

  /// Makes the bucket full, whatever was spent. Reservations from before it must not be given back.
  void reset(const Key& key) const { (void)decide_as("reset", reset_step(key)); }
  void reset(const Key& key, std::error_code& error) const noexcept {
    (void)decide(store(), reset_step(key), error);
  }
  /// No token for `span` from now; then one, and more as the quota says. Errc::invalid_argument if
  /// `span` is negative or more than longest().
  Decision block(const Key& key, Span span) const {
    return decide_as("block", block_step(key, span));
  }
  Decision block(const Key& key, Span span, std::error_code& error) const noexcept {
    return decide(store(), block_step(key, span), error);
  }
  /// Gives `amount` units, up to a full bucket. Errc::invalid_cost, here and below, if it is
  /// negative or above 2^52.
  Decision reward(const Key& key, Cost amount) const {
    return decide_as("reward", reward_step(key, amount));
  }
  Decision reward(const Key& key, Cost amount, std::error_code& error) const noexcept {
    return decide(store(), reward_step(key, amount), error);
  }
  /// Takes `amount` units, whatever is there, up to a debt of longest().
  Decision penalize(const Key& key, Cost amount) const {
    return decide_as("penalize", penalize_step(key, amount));
  }
  Decision penalize(const Key& key, Cost amount, std::error_code& error) const noexcept {
    return decide(store(), penalize_step(key, amount), error);
  }

  /// The step that try_acquire() asks, for a plan of several steps.
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1) const noexcept {
    return plain_ ? simple(token_bucket_acquire, key, cost)
                  : shaped(token_bucket_reserve, key, 0, cost.value());
  }
  /// The step that peek() asks: in a plan, a condition that charges nothing.
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept {
    return plain_ ? simple(token_bucket_peek, key, cost)
                  : shaped(token_bucket_peek_reserve, key, 0, cost.value());
  }
  /// The steps of the calls above. A Reservation is made of the answer to the first two.
  [[nodiscard]] Step reserve_step(const Key& key, Cost cost, Span max_wait) const noexcept {
    return shaped(token_bucket_reserve, key, max_wait.count(), cost.value());
  }
  [[nodiscard]] Step up_to_step(const Key& key, Cost most, Cost least) const noexcept {
    return shaped(token_bucket_reserve_some, key, least.value(), most.value());
  }
  [[nodiscard]] Step refund_step(const Key& key, const Reservation& reservation,
                                 Cost amount) const noexcept;
  [[nodiscard]] Step reset_step(const Key& key) const noexcept {
    return set(key, TokenBucketReserve::Change::reset, 0);
  }
  [[nodiscard]] Step block_step(const Key& key, Span span) const noexcept {
    return set(key, TokenBucketReserve::Change::block, span.count());
  }
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    return set(key, TokenBucketReserve::Change::reward, amount.value());
  }
  [[nodiscard]] Step penalize_step(const Key& key, Cost amount) const noexcept {
    return set(key, TokenBucketReserve::Change::charge, amount.value());
  }

  /// This limiter for one key that is used often: skips the look-up where the store can.
  /// Throws std::system_error (Errc::invalid_key).
  [[nodiscard]] BoundTokenBucket at(const Key& key) const;

  [[nodiscard]] const Quota& quota() const noexcept { return quota_; }
  /// The longest reservation, debt or block.
  [[nodiscard]] Span longest() const noexcept { return longest_; }

  struct Waiting;  ///< how acquire() waits: for detail::WaiterFor

 private:
  [[nodiscard]] Step simple(const Operation& operation, const Key& key, Cost cost) const noexcept {
    Step result{&operation, named(key), args_};
    result.args[4] = cost.value();
    return result;
  }
  [[nodiscard]] Step shaped(const Operation& operation, const Key& key, Word first,
                            Word second) const noexcept {
    Step result{&operation, named(key), shape_};
    result.args[6] = first;
    result.args[7] = second;
    return result;
  }
  [[nodiscard]] Step set(const Key& key, TokenBucketReserve::Change change,
                         Word amount) const noexcept {
    return shaped(token_bucket_adjust, key, static_cast<Word>(change), amount);
  }

  Quota quota_;
  Span longest_{};
  bool plain_ = true;  // acquire_step() and peek_step() are those of the plain form
  Arguments args_{};   // of the plain form; cost, the last, is filled in by each call
  Arguments shape_{};  // of the full form; the last two are filled in by each call
};

/// How acquire() waits; see detail::WaiterFor.
struct TokenBucket::Waiting : KeyedLimiter<TokenBucket>::Waiting {
  using Grant = Reservation;
  static Span reach(const TokenBucket& bucket) noexcept { return bucket.longest(); }
  static void ask(const TokenBucket& bucket, const Request& request, Span max_wait,
                  Completion done) noexcept {
    bucket.store().execute(bucket.reserve_step(request.key(), request.cost, max_wait),
                           std::move(done));
  }
  static Grant grant(const TokenBucket&, const Request&, const Outcome& outcome, Time) noexcept {
    return {outcome.decision, outcome.output};
  }
  static void refund(const TokenBucket& bucket, const Request& request, Grant& grant,
                     Completion done) noexcept {
    bucket.store().execute(bucket.refund_step(request.key(), grant, grant.granted),
                           std::move(done));
  }
};

}  // namespace sluice
