// A token bucket whose quota is stored with its state. See sluice/rules/shared_token_bucket.hpp for
// the rule, and sluice/rules/shared_token_bucket_reserve.hpp for reservations and refunds.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sluice/limiters/keyed_limiter.hpp"
#include "sluice/rules/shared_token_bucket_reserve.hpp"

namespace sluice {

/// Limits each key to the quota that is stored under it: configure() changes it for all processes
/// at once, from the next request on.
///
///     SharedTokenBucket bucket{*store, "plan"};
///     bucket.try_configure("alice", Quota::per_second(10));  // the first one wins
///     if (bucket.try_acquire("alice")) call();
///     bucket.configure("alice", Quota::per_second(20), Inheritance::additive);  // everywhere
///
/// A key without a quota fails with Errc::not_configured; a quota expires after `keep_alive`
/// without a grant. Use one keep_alive for all limiters of a name. Decision::limit is the quota's
/// burst in the calls of this class; in plans and the other forms of a call it is 0, because only
/// the store has it (see the output words of shared_token_bucket_acquire). Immutable: one object
/// serves any number of threads. Borrows or owns its store: see StoreHandle.
///
/// Grants that can be taken back are Reservations, and are refunded and settled as those of a
/// TokenBucket, but nothing is refunded that was granted under another quota. Reservations, debts
/// and blocks keep their time when the quota changes: the new quota begins after them. Every call
/// has a form that throws std::system_error and one that fills an error_code; it is one store
/// operation, O(1).
class SharedTokenBucket : public KeyedLimiter<SharedTokenBucket> {
 public:
  static constexpr const char* type_name = "SharedTokenBucket";  ///< in messages of exceptions

  static constexpr Span default_keep_alive = std::chrono::hours{24 * 30};

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, or `keep_alive` is below
  /// 1 us or above 71 years.
  SharedTokenBucket(const StoreHandle& store, detail::TextArg name,
                    Span keep_alive = default_keep_alive);

  /// The configuration of a key in the store.
  struct Configuration {
    Quota quota;
    Word version;       ///< increases by one with each change
    Decision decision;  ///< what remains, and until when the bucket is not full
  };
  /// The result of configure() and try_configure().
  struct Change {
    bool changed;  ///< false: a quota was there, or the same one, and is kept
    Word version;  ///< of the quota now in force
  };

  /// Sets the quota if there is none. Errc::invalid_argument, here and in configure(), unless
  /// keep_alive is longer than such a bucket takes to fill.
  Change try_configure(const KeyArg& key, const Quota& quota) const;
  Change try_configure(const KeyArg& key, const Quota& quota,
                       std::error_code& error) const noexcept;
  /// Sets the quota. `inheritance` selects how many tokens of the old quota carry over. No interval
  /// ever admits more than the largest burst and the largest rate in force in it allow. The quota
  /// that is in force already changes nothing, unless it is to be reset: a program may set it as
  /// often as it likes.
  Change configure(const KeyArg& key, const Quota& quota,
                   Inheritance inheritance = Inheritance::as_is) const;
  Change configure(const KeyArg& key, const Quota& quota, Inheritance inheritance,
                   std::error_code& error) const noexcept;
  /// The configuration in force, or none.
  [[nodiscard]] std::optional<Configuration> configuration(const KeyArg& key) const;
  [[nodiscard]] std::optional<Configuration> configuration(const KeyArg& key,
                                                           std::error_code& error) const noexcept;

  /// As in KeyedLimiter, with Decision::limit filled in.
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost = 1) const;
  [[nodiscard]] Decision try_acquire(const KeyArg& key, std::error_code& error) const noexcept {
    return try_acquire(key, 1, error);
  }
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost,
                                     std::error_code& error) const noexcept;
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost, const RequestId& id) const;
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost, const RequestId& id,
                                     std::error_code& error) const noexcept;
  [[nodiscard]] Decision peek(const KeyArg& key, Cost cost = 1) const;
  [[nodiscard]] Decision peek(const KeyArg& key, std::error_code& error) const noexcept {
    return peek(key, 1, error);
  }
  [[nodiscard]] Decision peek(const KeyArg& key, Cost cost, std::error_code& error) const noexcept;

  /// Reserves units at the first instant at which they are available, if that is at most `max_wait`
  /// ahead, in order of arrival at the store. Does not wait itself. Errc::invalid_argument if
  /// `max_wait` is negative or more than longest().
  Reservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait = Span{0}) const;
  Reservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait,
                      std::error_code& error) const noexcept;
  /// Spends units now that will be available within `max_debt`; as TokenBucket::borrow().
  Reservation borrow(const KeyArg& key, Cost cost, SpanArg max_debt) const;
  Reservation borrow(const KeyArg& key, Cost cost, SpanArg max_debt,
                     std::error_code& error) const noexcept {
    return reserve(key, cost, max_debt, error);
  }
  /// Fills the bucket, whatever was spent; the quota stays. REQUIRES: earlier reservations are not
  /// refunded afterwards. (configure() with Inheritance::reset fills it only as far as the bound
  /// permits.)
  void reset(const KeyArg& key) const;
  void reset(const KeyArg& key, std::error_code& error) const noexcept;
  /// Grants no token until `span` from now, whatever the quota becomes; then one is available, and
  /// more as the quota says. Errc::invalid_argument if `span` is negative or more than longest().
  Decision block(const KeyArg& key, SpanArg span) const;
  Decision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept;
  /// Adds `amount` units, up to a full bucket. Errc::invalid_cost, here and below, if it is
  /// negative or above 2^52.
  Decision reward(const KeyArg& key, Cost amount) const;
  Decision reward(const KeyArg& key, Cost amount, std::error_code& error) const noexcept;
  /// Removes `amount` units, whatever is available, up to a debt of longest().
  Decision penalize(const KeyArg& key, Cost amount) const;
  Decision penalize(const KeyArg& key, Cost amount, std::error_code& error) const noexcept;

  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1) const noexcept {
    return {&shared_token_bucket_acquire, named(key), {0, cost.value(), keep_alive_.count()}};
  }
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept {
    return {&shared_token_bucket_peek, named(key), {0, cost.value(), keep_alive_.count()}};
  }
  [[nodiscard]] Step configure_step(const Key& key, const Quota& quota, Inheritance inheritance,
                                    bool if_absent = false) const noexcept {
    return {&shared_token_bucket_configure,
            named(key),
            {quota.capacity(), quota.refill(), quota.period(), keep_alive_.count(),
             static_cast<Word>(inheritance), if_absent ? 1 : 0}};
  }

  /// The steps of the calls above.
  [[nodiscard]] Step reserve_step(const Key& key, Cost cost, SpanArg max_wait) const noexcept {
    return {&shared_token_bucket_reserve,
            named(key),
            {0, cost.value(), keep_alive_.count(), max_wait.count()}};
  }
  [[nodiscard]] Step refund_step(const Key& key, const Reservation& grant,
                                 Cost amount) const noexcept {
    return {&shared_token_bucket_refund,
            named(key),
            {0, grant.granted, keep_alive_.count(), amount.value(), grant.state[0], grant.state[1],
             grant.state[2], grant.state[3]}};
  }
  /// The step of settle() if it charges `units` more.
  [[nodiscard]] Step charge_step(const Key& key, const Reservation& /*grant*/,
                                 Cost units) const noexcept {
    return penalize_step(key, units);
  }
  [[nodiscard]] Step reset_step(const Key& key) const noexcept {
    return adjust_step(key, SharedTokenBucketReserve::Change::reset, 0);
  }
  [[nodiscard]] Step block_step(const Key& key, SpanArg span) const noexcept {
    return adjust_step(key, SharedTokenBucketReserve::Change::block, span.count());
  }
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    return adjust_step(key, SharedTokenBucketReserve::Change::reward, amount.value());
  }
  [[nodiscard]] Step penalize_step(const Key& key, Cost amount) const noexcept {
    return adjust_step(key, SharedTokenBucketReserve::Change::charge, amount.value());
  }
  /// What a plan's reserve_step() has granted: of the decision on that step and its output words.
  [[nodiscard]] static Reservation reservation(const Decision& decision,
                                               std::span<const Word> output,
                                               Cost cost = 0) noexcept;

  [[nodiscard]] Span keep_alive() const noexcept { return keep_alive_; }
  /// The longest reservation, debt or block: a minute.
  [[nodiscard]] Span longest() const noexcept { return Span{SharedTokenBucketReserve::longest}; }

  // For the library; see sluice/limiters/detail/shared_token_bucket.hpp.
  struct Verbs;

 private:
  [[nodiscard]] Step adjust_step(const Key& key, SharedTokenBucketReserve::Change change,
                                 Word amount) const noexcept {
    return {&shared_token_bucket_adjust,
            named(key),
            {0, static_cast<Word>(change), keep_alive_.count(), amount}};
  }

  Span keep_alive_;
};

}  // namespace sluice

#include "sluice/limiters/detail/shared_token_bucket.hpp"
