// The sliding window limiter, on any store. See sluice/rules/sliding_window.hpp for the rule.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "sluice/limiters/keyed_limiter.hpp"
#include "sluice/limiters/window_limit.hpp"
#include "sluice/reservation.hpp"
#include "sluice/rules/sliding_window.hpp"

namespace sluice {

/// A decision with what remains in each window after it. Decision::part is the window with the
/// longest wait if the request is refused, or with the least remaining if it is admitted; `count`
/// if a block makes it wait longest.
struct WindowsDecision : Decision {
  std::array<Word, SlidingWindowRule::max_windows> left{};
  std::size_t count = 0;

  /// The remaining units, in the order of the limiter's windows.
  [[nodiscard]] std::span<const Word> windows() const noexcept { return {left.data(), count}; }
};

/// A grant, possibly for a later time, with the decision.
struct [[nodiscard]] WindowReservation : WindowsDecision {
  WindowReservation() = default;
  WindowReservation(const WindowsDecision& decision, Word charged) noexcept
      : WindowsDecision(decision), granted(charged) {}

  Word granted = 0;  ///< units that were charged; zero when refused
  /// The wait from Decision::at until the reserved time.
  [[nodiscard]] Span wait() const noexcept { return retry_after; }
  /// The reserved time, by the store's clock. (Decision::at is the time of the decision.)
  [[nodiscard]] Time at() const noexcept { return Decision::at + retry_after; }
};

/// Limits each key exactly by one to eight sliding windows at once. Immutable: one object serves
/// any number of threads.
///
///     SlidingWindow limit{*store, "partner", {{25, 5s}, {400, 2min}}};
///     if (const auto d = limit.try_acquire("shop-7"); !d) retry_later(d.retry_after);
///
/// A key without a name gets the limiter's name. Limiters of the same name and spans on the same
/// store share their logs, in any order of the windows and with any limits: what was spent stays
/// spent. Other spans are another count. KeyedLimiter has the other forms of try_acquire() and
/// peek(); those here report all windows. Borrows or owns its store: see StoreHandle. REQUIRES: the
/// limiter outlives every step that it has made.
class SlidingWindow : public KeyedLimiter<SlidingWindow> {
 public:
  using Grant = WindowReservation;                           ///< what acquire() returns
  static constexpr const char* type_name = "SlidingWindow";  ///< in messages of exceptions

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, if there are no windows
  /// or more than SlidingWindowRule::max_windows, if two have the same span, or if one has a limit
  /// or a span out of the rule's range; the message names the value and the allowed range. Windows
  /// that can never bind are accepted: redundant_windows() lists them.
  SlidingWindow(const StoreHandle& store, detail::TextArg name, std::vector<WindowLimit> windows);
  /// The same for a braced list of windows.
  SlidingWindow(const StoreHandle& store, detail::TextArg name,
                std::initializer_list<WindowLimit> windows)
      : SlidingWindow(store, name, std::vector<WindowLimit>(windows)) {}

  /// As in KeyedLimiter, with all windows.
  [[nodiscard]] WindowsDecision try_acquire(const KeyArg& key, Cost cost = 1) const;
  [[nodiscard]] WindowsDecision try_acquire(const KeyArg& key,
                                            std::error_code& error) const noexcept {
    return try_acquire(key, 1, error);
  }
  [[nodiscard]] WindowsDecision try_acquire(const KeyArg& key, Cost cost,
                                            std::error_code& error) const noexcept;
  [[nodiscard]] WindowsDecision try_acquire(const KeyArg& key, Cost cost,
                                            const RequestId& id) const;
  [[nodiscard]] WindowsDecision try_acquire(const KeyArg& key, Cost cost, const RequestId& id,
                                            std::error_code& error) const noexcept;
  [[nodiscard]] WindowsDecision peek(const KeyArg& key, Cost cost = 1) const;
  [[nodiscard]] WindowsDecision peek(const KeyArg& key, std::error_code& error) const noexcept {
    return peek(key, 1, error);
  }
  [[nodiscard]] WindowsDecision peek(const KeyArg& key, Cost cost,
                                     std::error_code& error) const noexcept;

  /// Reserves `cost` at the first instant at which all windows admit it, if that is at most
  /// `max_wait` ahead: the decision is then allowed, and retry_after is the wait. Reservations are
  /// in order of arrival; no later request is scheduled ahead of them, and until their time nothing
  /// remains. Throws std::system_error; Errc::invalid_argument if max_wait is below zero or above
  /// 366 days.
  WindowReservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait) const;
  WindowReservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait,
                            std::error_code& error) const noexcept;

  /// Refunds a reservation, once. Returns the number of units refunded: those of it that are still
  /// the newest of the key's log. Where later ones were scheduled behind them that is 0, because
  /// only the end of a log can be removed without moving the rest. From the reservation's time on,
  /// the log is as if it had never been requested. Until then nothing more is admitted than without
  /// it; units that a full log had dropped for it may count for longer, up to that time.
  Word cancel(const KeyArg& key, const WindowReservation& reservation) const;
  Word cancel(const KeyArg& key, const WindowReservation& reservation,
              std::error_code& error) const noexcept;

  /// Refunds up to `unused` units of an allowed decision, as far as they are still the newest of
  /// the key's log. Returns the number of units refunded. Errc::invalid_cost if `unused` is
  /// negative or above 2^52.
  Word refund(const KeyArg& key, const Decision& grant, Cost unused) const;
  Word refund(const KeyArg& key, const Decision& grant, Cost unused,
              std::error_code& error) const noexcept;

  /// Corrects an estimated cost: refunds the difference as refund() does, or charges it at the
  /// first instant at which all windows admit it, as reserve() does: no window exceeds its limit,
  /// and later requests wait behind it. Nothing for a refusal. Errc::cost_exceeds_capacity, and
  /// nothing is charged, if the difference exceeds the smallest limit; Errc::invalid_cost if a cost
  /// is negative. One store operation.
  ///
  ///     const auto taken = limit.try_acquire("shop-7", 100);
  ///     limit.settle("shop-7", taken, {.estimated = 100, .actual = tokens_used});
  Settlement settle(const KeyArg& key, const Decision& taken, const SettledCost& cost) const;
  Settlement settle(const KeyArg& key, const Decision& taken, const SettledCost& cost,
                    std::error_code& error) const noexcept;

  /// Schedules no new grant before `span` from now, whatever the windows; existing reservations
  /// keep their time. Afterwards decisions follow the log. A later end of an earlier block stays in
  /// force. The decision's retry_after is 0; `reset_after` is when the state of the key expires.
  /// `span`: 0, which changes nothing, to max_block; else Errc::invalid_argument.
  ///
  ///     if (response.status == 429) limit.block("shop-7", feedback.wait());
  WindowsDecision block(const KeyArg& key, SpanArg span) const;
  WindowsDecision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept;
  static constexpr Span max_block{SlidingWindowRule::max_block};  ///< 366 days
  /// Removes the newest `amount` units from the log of the key, whoever spent them, reservations
  /// first; all, if there are fewer. REQUIRES: their grants are not refunded afterwards.
  /// Errc::invalid_cost if `amount` is negative or above 2^52.
  WindowsDecision reward(const KeyArg& key, Cost amount) const;
  WindowsDecision reward(const KeyArg& key, Cost amount, std::error_code& error) const noexcept;

  /// Clears the log of the key, and ends a block.
  void reset(const KeyArg& key) const;
  void reset(const KeyArg& key, std::error_code& error) const noexcept;

  /// The step of try_acquire(), for a plan of several steps; with max_wait, of reserve().
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1,
                                  SpanArg max_wait = Span{0}) const noexcept;
  /// The step of peek(): in a plan, a condition that charges nothing.
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept;
  /// The step of refund(). Its first output word is the number of units refunded.
  [[nodiscard]] Step refund_step(const Key& key, const Decision& grant, Cost units) const noexcept;
  /// The step of settle().
  [[nodiscard]] Step settle_step(const Key& key, const Decision& taken,
                                 const SettledCost& cost) const noexcept;
  /// The step of block().
  [[nodiscard]] Step block_step(const Key& key, SpanArg span) const noexcept {
    return step(sliding_window_block, key, {least_, span.count(), longest_});
  }
  /// The step of reward(). Its first output word is the number of removed units that some window
  /// still held.
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    return step(sliding_window_reward, key, {least_, amount.value(), longest_});
  }
  /// The step of reset().
  [[nodiscard]] Step reset_step(const Key& key) const noexcept;

  /// What a plan's acquire_step() for `cost` has granted: of the decision on it and its output
  /// words.
  [[nodiscard]] static WindowReservation reservation(const Decision& decision,
                                                     std::span<const Word> output,
                                                     Cost cost) noexcept;

  [[nodiscard]] std::span<const WindowLimit> windows() const noexcept { return windows_; }

  /// Describes the windows that can never bind, because others always refuse first. This is
  /// harmless in windows that are copied from an upstream's documentation; otherwise a limit or a
  /// span is probably misplaced. One text a window; empty if every window matters.
  ///
  ///     // {{10, 5s}, {5, 60s}}:
  ///     // "window 0 (10 in 5 s) can never bind: window 1 (5 in 1 min), which is wider,
  ///     //  admits at most 5 in 5 s"
  [[nodiscard]] static std::vector<std::string> redundant_windows(
      std::span<const WindowLimit> windows);
  [[nodiscard]] std::vector<std::string> redundant_windows() const {
    return redundant_windows(windows_);
  }

  // For the library; see sluice/limiters/detail/sliding_window.hpp.
  struct Verbs;

 private:
  friend class SharedSlidingWindow;
  /// Uses keys of this unit, whatever the spans.
  SlidingWindow(const StoreHandle& store, detail::TextArg name, std::string unit,
                std::vector<WindowLimit>&& windows);

  [[nodiscard]] static WindowsDecision with_windows(const Decision& decision,
                                                    std::span<const Word> output) noexcept;
  [[nodiscard]] Step step(const Operation& operation, const Key& key,
                          const Arguments& args) const noexcept {
    return {&operation, named(key), args, nullptr, table_};
  }

  std::vector<WindowLimit> windows_;
  std::vector<Word> table_;
  Word least_ = 0;
  Word longest_ = 0;
};

}  // namespace sluice

#include "sluice/limiters/detail/sliding_window.hpp"
