// The sliding window counter, on any store. See sluice/rules/sliding_window_counter.hpp for the
// rule.
#pragma once

#include <string>

#include "sluice/detail/limit_of.hpp"
#include "sluice/limiters/keyed_limiter.hpp"
#include "sluice/limiters/window_limit.hpp"
#include "sluice/rules/sliding_window_counter.hpp"

namespace sluice {

/// Limits each key to about `limit` units in any window of `span`, with three words of state a key
/// whatever the limit. Immutable: one object serves any number of threads.
///
///     SlidingWindowCounter limit{*store, "daily", {10'000'000, 24h}};
///     if (const Decision d = limit.try_acquire("alice"); !d) retry_later(d.retry_after);
///
/// A key without a name gets the limiter's name. Limiters of the same name and span on the same
/// store share their counts, and their limits may differ; another span is another count.
/// KeyedLimiter has try_acquire() and peek() in every form. There are no reservations for a later
/// time: the counts have no future windows.
///
/// refund() and settle() change the count of the window in which the grant was made, while that is
/// the current one or the one before; later they change nothing. A refund gives back at most what
/// is counted there, and no interval then holds more than worst_case() units that were not
/// refunded. settle() charges even beyond the limit. Each call is O(1), one store operation.
/// Borrows or owns its store: see StoreHandle.
class SlidingWindowCounter : public KeyedLimiter<SlidingWindowCounter> {
 public:
  static constexpr const char* type_name = "SlidingWindowCounter";  ///< in messages of exceptions

  static constexpr Span max_block{SlidingWindowCounterRule::max_block};  ///< 365 days

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, the limit is not 0 to
  /// 2^40 or `unlimited`, or the span not 1 us to 2^42 us (50 days).
  SlidingWindowCounter(const StoreHandle& store, detail::TextArg name, WindowLimit window);
  /// The limit of each key by a table. Throws std::invalid_argument also for a null pointer.
  SlidingWindowCounter(const StoreHandle& store, detail::TextArg name,
                       std::shared_ptr<const LimitTable<Word>> limits, SpanArg span);

  /// try_acquire() whose grant can be taken back.
  Reservation reserve(const KeyArg& key, Cost cost) const;
  Reservation reserve(const KeyArg& key, Cost cost, std::error_code& error) const noexcept;

  /// Subtracts `amount` units from the count of the current window, and the rest from the one
  /// before. Errc::invalid_cost, here and below, if `amount` is negative or above 2^52.
  Decision reward(const KeyArg& key, Cost amount) const;
  Decision reward(const KeyArg& key, Cost amount, std::error_code& error) const noexcept;
  /// Adds `amount` units to the current window, even beyond the limit. They are weighted like
  /// others, so that a penalty above the limit refuses requests for at most two spans.
  Decision penalize(const KeyArg& key, Cost amount) const {
    return decide_as("penalize", penalize_step(key, amount));
  }
  Decision penalize(const KeyArg& key, Cost amount, std::error_code& error) const noexcept {
    return decide(store(), penalize_step(key, amount), error);
  }

  /// Admits nothing until `span` from now, and wait hints include the block: for an API that
  /// asks for a pause. A later end of an earlier block stays in force. The counts stay and age as
  /// usual; changing them does not end the block, reset() does. Range: 0, which changes nothing, to
  /// max_block, else Errc::invalid_argument. If the clock is set back, the block lasts longer by
  /// that.
  ///
  ///     if (response.status == 429) limit.block("alice", feedback.wait().value_or(pause));
  Decision block(const KeyArg& key, SpanArg span) const {
    return decide_as("block", block_step(key, span));
  }
  Decision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept {
    return decide(store(), block_step(key, span), error);
  }

  /// Sets the counts of the key to zero, and ends a block. REQUIRES: earlier grants are not
  /// refunded afterwards.
  void reset(const KeyArg& key) const;
  void reset(const KeyArg& key, std::error_code& error) const noexcept;

  /// The step of try_acquire(), for a plan of several steps.
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1) const noexcept {
    return step(sliding_window_counter_acquire, key, cost);
  }
  /// The step of peek(): in a plan, a condition that charges nothing.
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept {
    return step(sliding_window_counter_peek, key, cost);
  }
  /// The step of reset().
  [[nodiscard]] Step reset_step(const Key& key) const noexcept {
    return detail::by_limit({&sliding_window_counter_reset, named(key), {limit_.of(key)}});
  }

  /// The steps of the other calls.
  [[nodiscard]] Step refund_step(const Key& key, const Reservation& grant,
                                 Cost amount) const noexcept {
    return adjust(key, SlidingWindowCounterRule::Change::refund, amount, grant.at);
  }
  /// The step of settle() if it charges `units` more. Its output word, as that of refund_step(), is
  /// the number of units that it has changed.
  [[nodiscard]] Step charge_step(const Key& key, const Reservation& grant,
                                 Cost units) const noexcept {
    return adjust(key, SlidingWindowCounterRule::Change::charge, units, grant.at);
  }
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    return adjust(key, SlidingWindowCounterRule::Change::reward, amount);
  }
  [[nodiscard]] Step penalize_step(const Key& key, Cost amount) const noexcept {
    return adjust(key, SlidingWindowCounterRule::Change::penalize, amount);
  }

  [[nodiscard]] Step block_step(const Key& key, SpanArg span) const noexcept {
    return detail::by_limit(
        {&sliding_window_counter_block, named(key), {limit_.of(key), span_.count(), span.count()}});
  }

  /// What a plan's acquire_step() for `cost` has granted: of the decision on it.
  [[nodiscard]] static Reservation reservation(const Decision& decision,
                                               std::span<const Word> /*output*/,
                                               Cost cost) noexcept {
    return {decision, cost.value()};
  }

  /// With a table, the limit of everyone.
  [[nodiscard]] WindowLimit window() const noexcept { return {limit_.everyone(), span_}; }
  /// The most units that any interval of the window's span can hold; see
  /// SlidingWindowCounterRule::worst_case().
  [[nodiscard]] Word worst_case() const noexcept {
    const Word limit = limit_.everyone();
    if (detail::is_constant(limit)) return limit;
    return SlidingWindowCounterRule::worst_case(limit, span_.count());
  }

  // For the library; see sluice/limiters/detail/sliding_window_counter.hpp.
  [[nodiscard]] bool has_table() const noexcept { return limit_.has_table(); }
  struct Verbs;

 private:
  [[nodiscard]] Step adjust(const Key& key, SlidingWindowCounterRule::Change change, Cost amount,
                            Time taken = Time{}) const noexcept {
    return detail::by_limit({&sliding_window_counter_adjust,
                             named(key),
                             {limit_.of(key), span_.count(), amount.value(),
                              static_cast<Word>(change), to_word(taken)}});
  }
  [[nodiscard]] Step step(const Operation& operation, const Key& key, Cost cost) const noexcept {
    return detail::by_limit(
        {&operation, named(key), {limit_.of(key), span_.count(), cost.value()}});
  }

  detail::LimitOf<Word> limit_;
  Span span_;
};

}  // namespace sluice

#include "sluice/limiters/detail/sliding_window_counter.hpp"
