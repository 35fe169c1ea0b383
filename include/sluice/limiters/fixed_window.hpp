// The fixed window limiter, on any store: a limit of units a minute, a day or a month. See
// sluice/rules/fixed_window.hpp for the rule.
#pragma once

#include <memory>
#include <string>

#include "sluice/detail/limit_of.hpp"
#include "sluice/limiters/calendar.hpp"
#include "sluice/limiters/keyed_limiter.hpp"
#include "sluice/rules/fixed_window.hpp"

namespace sluice {

/// Limits each key to `limit` units in each window of a calendar.
///
///     FixedWindow operations{*store, "operations", 10'000, Calendar::daily()};
///     if (const Decision d = operations.try_acquire(account); !d) resume_at(d.at + d.retry_after);
///
/// A key without a name gets the limiter's name. Limiters of the same name and calendar on the same
/// store share their windows, and their limits may differ; another calendar is another count.
/// KeyedLimiter has the other forms of try_acquire() and peek(). There are no reservations for a
/// later window.
///
/// refund() and settle() change the use of the window in which the grant was made, while it is the
/// current one; later they change nothing. A refund gives back at most what is used. settle()
/// charges even beyond the limit. Each call is O(1), one store operation.
///
/// The store's clock decides which window is current; the limiter sends the windows around the time
/// of its own clock. If the two clocks differ by more than a window, the blocking calls and their
/// Asio forms determine the difference and retry; the callback, future and awaitable forms fail
/// with Errc::outside_calendar until another call, or synchronize(), has done so. Thread-safe.
/// Borrows or owns its store: see StoreHandle.
class FixedWindow : public KeyedLimiter<FixedWindow> {
 public:
  static constexpr const char* type_name = "FixedWindow";  ///< in messages of exceptions

  static constexpr Span max_block{FixedWindowRule::max_block};  ///< 365 days

  /// Throws std::invalid_argument if `limit` is not in [0, 2^42] or `unlimited`, or `name` is empty
  /// or longer than 1 MiB.
  template <CountType T>
  FixedWindow(const StoreHandle& store, detail::TextArg name, T limit, Calendar calendar)
      : FixedWindow(store, name, detail::Given(limit), std::move(calendar)) {}
  template <std::floating_point T>
  FixedWindow(const StoreHandle&, detail::TextArg, T, Calendar) = delete;
  /// The limit of each key by a table. Throws std::invalid_argument also for a null pointer.
  FixedWindow(const StoreHandle& store, detail::TextArg name,
              std::shared_ptr<const LimitTable<Word>> limits, Calendar calendar);

  /// As in KeyedLimiter. `retry_after` is the time until the next window.
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

  /// try_acquire() whose grant can be taken back.
  Reservation reserve(const KeyArg& key, Cost cost) const;
  Reservation reserve(const KeyArg& key, Cost cost, std::error_code& error) const noexcept;

  /// Refunds up to `amount` units of the current window, at most what is used.
  Decision reward(const KeyArg& key, Cost amount) const;
  Decision reward(const KeyArg& key, Cost amount, std::error_code& error) const noexcept;
  /// Charges `amount` units to the current window, even beyond the limit, up to 2^43 - 1 in all;
  /// nothing remains then until the window ends. Errc::invalid_cost, here and above, if `amount` is
  /// negative or above 2^52.
  Decision penalize(const KeyArg& key, Cost amount) const;
  Decision penalize(const KeyArg& key, Cost amount, std::error_code& error) const noexcept;

  /// Admits nothing until `span` from now, and wait hints include the block: for an API that
  /// asks for a pause. A later end of an earlier block stays in force. What was used stays used:
  /// the block ends within a window, with what is left of that one; meanwhile refund(), settle(),
  /// reward() and penalize() count in that window if it is the current one, and do not end the
  /// block. reset() does. Range: 0, which changes nothing, to max_block, else
  /// Errc::invalid_argument. If the clock is set back, the block lasts longer by that.
  ///
  ///     if (response.status == 429) operations.block(account, feedback.wait().value_or(pause));
  Decision block(const KeyArg& key, SpanArg span) const;
  Decision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept;

  /// Sets the use to zero, and ends a block.
  void reset(const KeyArg& key) const;
  void reset(const KeyArg& key, std::error_code& error) const noexcept;

  /// The steps of these calls, for plans and for the forms of decide.hpp.
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1) const noexcept {
    return step(fixed_window_acquire, key, cost);
  }
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept {
    return step(fixed_window_peek, key, cost);
  }
  [[nodiscard]] Step refund_step(const Key& key, const Reservation& grant,
                                 Cost amount) const noexcept;
  [[nodiscard]] Step reset_step(const Key& key) const noexcept {
    return detail::by_limit({&fixed_window_reset, named(key), {limit_.of(key)}});
  }
  /// The step of settle() if it charges `units` more. It fails with Errc::outside_calendar if the
  /// window of the grant has ended.
  [[nodiscard]] Step charge_step(const Key& key, const Reservation& grant,
                                 Cost units) const noexcept;
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    const Word units = amount.value() < 0 ? -word_limit - 1 : -amount.value();
    return step(fixed_window_adjust, key, units);
  }
  [[nodiscard]] Step penalize_step(const Key& key, Cost amount) const noexcept {
    const Word units = amount.value() < 0 ? word_limit + 1 : amount.value();
    return step(fixed_window_adjust, key, units);
  }

  [[nodiscard]] Step block_step(const Key& key, SpanArg span) const noexcept {
    return step(fixed_window_block, key, span.count());
  }

  /// What a plan's acquire_step() for `cost` has granted: of the decision on it.
  [[nodiscard]] static Reservation reservation(const Decision& decision,
                                               std::span<const Word> /*output*/,
                                               Cost cost) noexcept {
    return {decision, cost.value()};
  }

  /// Determines the difference of the store's clock and Store::clock() by a request next to `key`
  /// that reads no state. Needed only for calendars, after a callback, future or co_await form
  /// failed with Errc::outside_calendar. Throws std::system_error if the store could not decide.
  void synchronize(const KeyArg& key) const;
  void synchronize(const KeyArg& key, std::error_code& error) const noexcept;

  /// With a table, that of everyone.
  [[nodiscard]] Word limit() const noexcept { return limit_.everyone(); }
  [[nodiscard]] const Calendar& calendar() const noexcept { return calendar_; }

  // For the library; see sluice/limiters/detail/fixed_window.hpp.
  [[nodiscard]] bool has_table() const noexcept { return limit_.has_table(); }
  class Asking;
  struct Verbs;

 private:
  FixedWindow(const StoreHandle& store, detail::TextArg name, detail::Given limit,
              Calendar calendar);
  FixedWindow(const StoreHandle& store, detail::TextArg name, detail::LimitOf<Word> limit,
              Calendar calendar);

  [[nodiscard]] Step step(const Operation& operation, const Key& key, Cost cost) const noexcept;
  [[nodiscard]] Step clock_step(const Key& key) const noexcept;
  /// Learns the difference of the clocks from the decision on clock_step().
  void learn_clock(const Decision& answer) const noexcept;

  detail::LimitOf<Word> limit_;
  Calendar calendar_;
  /// What earlier calls have learned: the difference of the clocks, the current window. Shared by
  /// copies.
  struct Known;
  detail::CopyOnMovePtr<Known> known_;
};

}  // namespace sluice

#include "sluice/limiters/detail/fixed_window.hpp"
