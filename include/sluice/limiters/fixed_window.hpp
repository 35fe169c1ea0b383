// The fixed window limiter, on any store: so many units a minute, a day or a month. See
// sluice/rules/fixed_window.hpp for the rule.
#pragma once

#include <memory>
#include <string>

#include "sluice/detail/keyed_limiter.hpp"
#include "sluice/limiters/calendar.hpp"
#include "sluice/reservation.hpp"
#include "sluice/rules/fixed_window.hpp"

namespace sluice {

/// Limits each key to so many units in each window of a calendar.
///
///     FixedWindow operations{*store, "operations", 10'000, Calendar::daily()};
///     if (const Decision d = operations.try_acquire(account); !d) resume_at(d.at + d.retry_after);
///
/// A key without a name takes the limiter's. Limiters of the same name and calendar on the same
/// store share their windows, and their limits may differ; another calendar is another count. Every
/// form of the call is in KeyedLimiter.
///
/// The windows of a calendar are counted by the store's clock, and the limiter sends those around
/// its own clock's time. If the two are further apart than a window, the calls here find out how
/// far and ask again; the callback, future and co_await forms end in Errc::outside_calendar until
/// one of the calls here has, or synchronize() was called.
/// Thread-safe. Borrows or owns its store: see StoreHandle.
class FixedWindow : public KeyedLimiter<FixedWindow> {
 public:
  static constexpr const char* type_name = "FixedWindow";  ///< in texts of exceptions

  static constexpr Span max_block{FixedWindowRule::max_block};  ///< 365 days

  /// Throws std::invalid_argument if `limit` is not in [1, 2^42], or `name` is empty or longer than
  /// 1 MiB.
  template <CountType T>
  FixedWindow(const StoreHandle& store, detail::TextArg name, T limit, Calendar calendar)
      : FixedWindow(store, name, detail::Given(limit), std::move(calendar)) {}
  template <std::floating_point T>
  FixedWindow(const StoreHandle&, detail::TextArg, T, Calendar) = delete;

  /// As in KeyedLimiter. `retry_after` is exactly the time until the next window.
  [[nodiscard]] Decision try_acquire(const Key& key, Cost cost = 1) const;
  [[nodiscard]] Decision try_acquire(const Key& key, std::error_code& error) const noexcept {
    return try_acquire(key, 1, error);
  }
  [[nodiscard]] Decision try_acquire(const Key& key, Cost cost,
                                     std::error_code& error) const noexcept;
  [[nodiscard]] Decision try_acquire(const Key& key, Cost cost, const RequestId& id) const;
  [[nodiscard]] Decision try_acquire(const Key& key, Cost cost, const RequestId& id,
                                     std::error_code& error) const noexcept;
  [[nodiscard]] Decision peek(const Key& key, Cost cost = 1) const;
  [[nodiscard]] Decision peek(const Key& key, std::error_code& error) const noexcept {
    return peek(key, 1, error);
  }
  [[nodiscard]] Decision peek(const Key& key, Cost cost, std::error_code& error) const noexcept;

  /// Gives back units that `taken` was granted and that were not needed, if its window is still the
  /// present one. Answers how many came back: none if the window is over or nothing of it is used.
  /// Give back what was taken, once: the store does not know whose units they are. Of a refusal
  /// nothing comes back. Errc::invalid_cost if the cost is negative or above 2^52.
  Word refund(const Key& key, const Decision& taken, Cost cost) const;
  Word refund(const Key& key, const Decision& taken, Cost cost,
              std::error_code& error) const noexcept;

  /// After an estimate the true cost: refunds the difference, or charges it whatever is there, in
  /// the window in which `taken` was granted. Nothing if that is over, or if it was refused.
  /// `given_back` is what came back, never more than was used. Errc::invalid_cost if a cost is
  /// negative. O(1), one store operation, as the calls below.
  ///
  ///     const Decision taken = tokens.try_acquire("alice", 100);
  ///     tokens.settle("alice", taken, {.estimated = 100, .actual = tokens_used});
  Settlement settle(const Key& key, const Decision& taken, const SettledCost& cost) const;
  Settlement settle(const Key& key, const Decision& taken, const SettledCost& cost,
                    std::error_code& error) const noexcept;

  /// Gives `amount` units of the present window back, as many as are used.
  Decision reward(const Key& key, Cost amount) const;
  Decision reward(const Key& key, Cost amount, std::error_code& error) const noexcept;
  /// Charges `amount` units to the present window, whatever is there: more than the limit may be
  /// used, up to 2^43, and nothing remains until the window ends. Errc::invalid_cost, here and
  /// above, if `amount` is negative or above 2^52.
  Decision penalize(const Key& key, Cost amount) const;
  Decision penalize(const Key& key, Cost amount, std::error_code& error) const noexcept;

  /// Nothing is admitted until `span` from now, and hints say so: an upstream has asked to wait. A
  /// later time stands. What was used stays used: the block is over in the window that its end lies
  /// in, with what is left of that; meanwhile refund(), settle(), reward() and penalize() count in
  /// it if it is the present one, and open nothing. reset() opens the key. Range: 0, which changes
  /// nothing, to max_block, else Errc::invalid_argument. A clock that is set back lengthens a block
  /// by as much.
  ///
  ///     if (response.status == 429) operations.block(account, feedback.wait());
  Decision block(const Key& key, Span span) const;
  Decision block(const Key& key, Span span, std::error_code& error) const noexcept;

  /// Forgets what was used, and a block.
  void reset(const Key& key) const { (void)decide_as("reset", reset_step(key)); }
  void reset(const Key& key, std::error_code& error) const noexcept {
    (void)decide(store(), reset_step(key), error);
  }

  /// The steps of these calls, for plans and for the forms of decide.hpp.
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1) const noexcept {
    return step(fixed_window_acquire, key, cost);
  }
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept {
    return step(fixed_window_peek, key, cost);
  }
  [[nodiscard]] Step refund_step(const Key& key, Cost cost, Time taken_at) const noexcept;
  [[nodiscard]] Step reset_step(const Key& key) const noexcept {
    return {&fixed_window_reset, named(key), {limit_}};
  }
  /// The step that settle() asks. Errc::outside_calendar: the window in which it was taken is over.
  [[nodiscard]] Step settle_step(const Key& key, const Decision& taken,
                                 const SettledCost& cost) const noexcept;
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    const Word units = amount.value() < 0 ? -word_limit - 1 : -amount.value();
    return step(fixed_window_adjust, key, units);
  }
  [[nodiscard]] Step penalize_step(const Key& key, Cost amount) const noexcept {
    const Word units = amount.value() < 0 ? word_limit + 1 : amount.value();
    return step(fixed_window_adjust, key, units);
  }

  [[nodiscard]] Step block_step(const Key& key, Span span) const noexcept {
    return step(fixed_window_block, key, span.count());
  }

  /// Finds out how far the store's clock is from Store::clock(), by one question beside `key`,
  /// which reads no state. For calendars only, and only if a form that does not do so by itself
  /// ended in Errc::outside_calendar. Throws std::system_error if the store could not decide.
  void synchronize(const Key& key) const;
  void synchronize(const Key& key, std::error_code& error) const noexcept;

  [[nodiscard]] Word limit() const noexcept { return limit_; }
  [[nodiscard]] const Calendar& calendar() const noexcept { return calendar_; }

  struct Waiting;  ///< how acquire() waits: for detail::WaiterFor

 private:
  FixedWindow(const StoreHandle& store, detail::TextArg name, detail::Given limit,
              Calendar calendar);

  [[nodiscard]] Step step(const Operation& operation, const Key& key, Cost cost) const noexcept;
  /// A refusal charged nothing, nor did what was granted without the store.
  [[nodiscard]] static Cost charged(Cost cost, const Decision& taken) noexcept {
    return detail::charged_nothing(taken) && cost.value() > 0 ? Cost(0) : cost;
  }
  /// Asks, and if the windows were not those around the store's clock, asks again.
  template <class Ask>
  Decision ask(const Key& key, Ask plan, std::error_code& error) const noexcept;

  Word limit_;
  Calendar calendar_;
  /// What the last calls found out: the clock's lead, the window around it. Shared by copies.
  struct Known;
  detail::CopyOnMovePtr<Known> known_;
};

/// How acquire() waits; see detail::WaiterFor.
struct FixedWindow::Waiting : KeyedLimiter<FixedWindow>::Waiting {
  static void refund(const FixedWindow& window, const Request& request, const Grant& grant,
                     Completion done) noexcept {
    const Cost units = charged(request.cost, grant);
    window.store().execute(window.refund_step(request.key(), units, grant.at), std::move(done));
  }
};

}  // namespace sluice
