// The sliding window counter, on any store. See sluice/rules/sliding_window_counter.hpp for the
// rule.
#pragma once

#include <string>

#include "sluice/detail/keyed_limiter.hpp"
#include "sluice/limiters/window_limit.hpp"
#include "sluice/reservation.hpp"
#include "sluice/rules/sliding_window_counter.hpp"

namespace sluice {

/// Limits each key to about so many units in any window, at three words a key whatever the limit.
/// Immutable: one object serves any number of threads.
///
///     SlidingWindowCounter limit{*store, "daily", {10'000'000, 24h}};
///     if (const Decision d = limit.try_acquire("alice"); !d) retry_later(d.retry_after);
///
/// A key without a name takes the limiter's. Limiters of the same name and span on the same store
/// share their counts, and their limits may differ; another span is another count. Every form of
/// the call is in KeyedLimiter. What gives back names the decision that took: its instant says in
/// which window its units are counted. No verb reserves: the counts hold no time ahead.
/// Borrows or owns its store: see StoreHandle.
class SlidingWindowCounter : public KeyedLimiter<SlidingWindowCounter> {
 public:
  static constexpr const char* type_name = "SlidingWindowCounter";  ///< in texts of exceptions

  static constexpr Span max_block{SlidingWindowCounterRule::max_block};  ///< 365 days

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, the limit is not 1 to
  /// 2^40, or the span not 1 us to 2^42 us (50 days).
  SlidingWindowCounter(const StoreHandle& store, detail::TextArg name, WindowLimit window);

  /// Gives back `amount` of what `taken` was granted, once: the store does not know whose units
  /// they are. Answers how many came back: all of them while its window is the current one or the
  /// one before, as far as that has them; none later, or of a refusal. No interval then holds more
  /// than worst_case() units that were not given back. Errc::invalid_cost, here and below, if an
  /// amount or a cost is negative, or a reward or a penalty above 2^52. O(1), one store operation
  /// each.
  Word refund(const Key& key, const Decision& taken, Cost amount) const;
  Word refund(const Key& key, const Decision& taken, Cost amount,
              std::error_code& error) const noexcept;

  /// After an estimate the true cost: refunds the difference, or charges it whatever is there, in
  /// the window in which `taken` was granted. Nothing if that counts no more, or if it was refused.
  ///
  ///     const Decision taken = limit.try_acquire("alice", 100);
  ///     limit.settle("alice", taken, {.estimated = 100, .actual = tokens_used});
  Settlement settle(const Key& key, const Decision& taken, const SettledCost& cost) const;
  Settlement settle(const Key& key, const Decision& taken, const SettledCost& cost,
                    std::error_code& error) const noexcept;

  /// Takes `amount` units off what is counted: off the current window first, then off the one
  /// before.
  Decision reward(const Key& key, Cost amount) const {
    return decide_as("reward", reward_step(key, amount));
  }
  Decision reward(const Key& key, Cost amount, std::error_code& error) const noexcept {
    return decide(store(), reward_step(key, amount), error);
  }
  /// Adds `amount` units to the current window, whatever is there. They weigh as others do, so that
  /// more than the limit is refused for two spans at most.
  Decision penalize(const Key& key, Cost amount) const {
    return decide_as("penalize", penalize_step(key, amount));
  }
  Decision penalize(const Key& key, Cost amount, std::error_code& error) const noexcept {
    return decide(store(), penalize_step(key, amount), error);
  }

  /// Nothing is admitted until `span` from now, and hints say so: an upstream has asked to wait. A
  /// later time stands. The counts stay, weigh less as time goes by, and may be changed meanwhile,
  /// which opens nothing; reset() opens the key. Range: 0, which changes nothing, to max_block,
  /// else Errc::invalid_argument. A clock that is set back lengthens a block by as much.
  ///
  ///     if (response.status == 429) limit.block("alice", feedback.wait());
  Decision block(const Key& key, Span span) const {
    return decide_as("block", block_step(key, span));
  }
  Decision block(const Key& key, Span span, std::error_code& error) const noexcept {
    return decide(store(), block_step(key, span), error);
  }

  /// Forgets all that the key has spent, and a block. What was taken before it must not be given
  /// back.
  void reset(const Key& key) const { decide_as("reset", reset_step(key)); }
  void reset(const Key& key, std::error_code& error) const noexcept {
    static_cast<void>(decide(store(), reset_step(key), error));
  }

  /// The step that try_acquire() asks, for a plan of several steps.
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1) const noexcept {
    return step(sliding_window_counter_acquire, key, cost);
  }
  /// The step that peek() asks: in a plan, a condition that charges nothing.
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept {
    return step(sliding_window_counter_peek, key, cost);
  }
  /// The step that reset() asks.
  [[nodiscard]] Step reset_step(const Key& key) const noexcept {
    return {&sliding_window_counter_reset, named(key), {window_.limit}};
  }

  /// The steps of the other calls.
  [[nodiscard]] Step refund_step(const Key& key, const Decision& taken,
                                 Cost amount) const noexcept {
    return adjust(key, SlidingWindowCounterRule::Change::refund, charged(taken, amount), taken.at);
  }
  /// The step that settle() asks. Its detail is how many units came back or were charged.
  [[nodiscard]] Step settle_step(const Key& key, const Decision& taken,
                                 const SettledCost& cost) const noexcept;
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    return adjust(key, SlidingWindowCounterRule::Change::reward, amount);
  }
  [[nodiscard]] Step penalize_step(const Key& key, Cost amount) const noexcept {
    return adjust(key, SlidingWindowCounterRule::Change::penalize, amount);
  }

  [[nodiscard]] Step block_step(const Key& key, Span span) const noexcept {
    return {&sliding_window_counter_block,
            named(key),
            {window_.limit, window_.span.count(), span.count()}};
  }

  [[nodiscard]] const WindowLimit& window() const noexcept { return window_; }
  /// The most units that any interval of the window's span can hold; see SlidingWindowCounterRule.
  [[nodiscard]] Word worst_case() const noexcept {
    return SlidingWindowCounterRule::worst_case(window_.limit, window_.span.count());
  }

  struct Waiting;  ///< how acquire() waits: for detail::WaiterFor

 private:
  /// A refusal charged nothing, nor did what was granted without the store.
  [[nodiscard]] static Cost charged(const Decision& taken, Cost amount) noexcept {
    return detail::charged_nothing(taken) && amount.value() > 0 ? Cost(0) : amount;
  }
  [[nodiscard]] Step adjust(const Key& key, SlidingWindowCounterRule::Change change, Cost amount,
                            Time taken = Time{}) const noexcept {
    return {&sliding_window_counter_adjust,
            named(key),
            {window_.limit, window_.span.count(), amount.value(), static_cast<Word>(change),
             to_word(taken)}};
  }
  [[nodiscard]] Step step(const Operation& operation, const Key& key, Cost cost) const noexcept {
    return {&operation, named(key), {window_.limit, window_.span.count(), cost.value()}};
  }

  WindowLimit window_;
};

/// How acquire() waits; see detail::WaiterFor.
struct SlidingWindowCounter::Waiting : KeyedLimiter<SlidingWindowCounter>::Waiting {
  static void refund(const SlidingWindowCounter& counter, const Request& request,
                     const Grant& grant, Completion done) noexcept {
    counter.store().execute(counter.refund_step(request.key(), grant, request.cost),
                            std::move(done));
  }
};

}  // namespace sluice
