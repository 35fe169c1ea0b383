// The sliding window counter, on any store. See sluice/algorithms/sliding_counter.hpp for the rule.
#pragma once

#include <string>

#include "sluice/algorithms/sliding_counter.hpp"
#include "sluice/keyed_limiter.hpp"
#include "sluice/window_limit.hpp"

namespace sluice {

/// Limits each key to about so many units in any window, at four words a key whatever the limit.
/// Immutable: one object serves any number of threads.
///
///     SlidingCounter limit{*store, "daily", {10'000'000, 24h}};
///     if (const Decision d = limit.try_acquire("alice"); !d) retry_later(d.retry_after);
///
/// A key without a name takes the limiter's. Limiters of the same name on the same store share
/// their counts. Every form of the call is in KeyedLimiter. No verb gives back: the counts do not
/// say when a unit was taken. REQUIRES: the store outlives the limiter.
class SlidingCounter : public KeyedLimiter<SlidingCounter> {
 public:
  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, the limit is not 1 to
  /// 2^40, or the span not 1 us to 2^42 us (50 days).
  SlidingCounter(Store& store, std::string name, WindowLimit window);

  /// Forgets all that the key has spent.
  void reset(const Key& key) const { decide(store(), clear(key)); }
  void reset(const Key& key, std::error_code& error) const noexcept {
    decide(store(), clear(key), error);
  }

  /// The step that try_acquire() asks, for a plan of several steps.
  [[nodiscard]] Step take(const Key& key, Cost cost = 1) const noexcept {
    return step(sliding_counter_take, key, cost);
  }
  /// The step that peek() asks: in a plan, a condition that charges nothing.
  [[nodiscard]] Step look(const Key& key, Cost cost = 1) const noexcept {
    return step(sliding_counter_peek, key, cost);
  }
  /// The step that reset() asks.
  [[nodiscard]] Step clear(const Key& key) const noexcept {
    return {&sliding_counter_reset, named(key), {window_.limit}};
  }

  [[nodiscard]] const WindowLimit& window() const noexcept { return window_; }
  /// The most units that any interval of the window's span can hold; see SlidingCounterRule.
  [[nodiscard]] Word worst_case() const noexcept {
    return SlidingCounterRule::worst_case(window_.limit, window_.span.count());
  }

 private:
  [[nodiscard]] Step step(const Operation& operation, const Key& key, Cost cost) const noexcept {
    return {&operation, named(key), {window_.limit, window_.span.count(), cost.value()}};
  }

  WindowLimit window_;
};

}  // namespace sluice
