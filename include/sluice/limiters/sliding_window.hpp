// The sliding window limiter, on any store. See sluice/rules/sliding_window.hpp for the rule.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "sluice/detail/limit_of.hpp"
#include "sluice/limiters/keyed_limiter.hpp"
#include "sluice/limiters/window_limit.hpp"
#include "sluice/rules/sliding_window.hpp"

namespace sluice {

/// Limits each key exactly by one to eight sliding windows at once. Immutable: one object serves
/// any number of threads.
///
///     SlidingWindow limit{*store, "partner", {{25, 5s}, {400, 2min}}};
///     if (const auto d = limit.try_acquire("shop-7"); !d) retry_later(d.retry_after);
///
/// A key without a name gets the limiter's name. Limiters of the same name and spans on the same
/// store share their logs, in any order of the windows and with any limits: what was spent stays
/// spent. Other spans are another count. KeyedLimiter has try_acquire() and peek() in every form;
/// Decision::part is the window with the longest wait if the request is refused, or with the least
/// remaining if it is admitted; `windows().size()` if a block makes it wait longest.
///
/// A refund gives back units of its own grant, however many came behind it, until it has left all
/// windows. settle() adds what was used beyond the estimate to the grant, beyond the limits if need
/// be, so that later requests wait for it.
///
/// A key has at most SlidingWindowRule::max_entries grants in its longest window: if there are as
/// many, a request waits until the oldest leaves it.
///
/// Borrows or owns its store: see StoreHandle. REQUIRES: the limiter, or a copy of it, outlives
/// every step that it has made.
class SlidingWindow : public KeyedLimiter<SlidingWindow> {
 public:
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

  /// The limits of each key by a table, whose windows have the same spans. Throws
  /// std::invalid_argument also for a null pointer.
  SlidingWindow(const StoreHandle& store, detail::TextArg name,
                std::shared_ptr<const LimitTable<std::vector<WindowLimit>>> limits);

  /// Reserves `cost` at the first instant at which all windows admit it, if that is at most
  /// `max_wait` ahead: the decision is then allowed, and retry_after is the wait. Reservations are
  /// in order of arrival; no later request is scheduled ahead of them, and until their time nothing
  /// remains. Throws std::system_error; Errc::invalid_argument if max_wait is below zero or above
  /// 366 days.
  Reservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait = Span{0}) const;
  Reservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait,
                      std::error_code& error) const noexcept;

  /// What remains now in each window, in the order of windows(); Decision::remaining is the least
  /// of them. Changes nothing.
  [[nodiscard]] std::vector<Word> remaining(const KeyArg& key) const;
  [[nodiscard]] std::vector<Word> remaining(const KeyArg& key, std::error_code& error) const;
  /// The same after a plan's acquire_step() or peek_step(), of the output words of that step.
  [[nodiscard]] static std::span<const Word> remaining_of(std::span<const Word> output) noexcept {
    return output.size() < 3 ? std::span<const Word>() : output.subspan(3);
  }

  /// Schedules no new grant before `span` from now, whatever the windows; existing reservations
  /// keep their time. Afterwards decisions follow the log. A later end of an earlier block stays in
  /// force. The decision's retry_after is 0; `reset_after` is when the state of the key expires.
  /// `span`: 0, which changes nothing, to max_block; else Errc::invalid_argument.
  ///
  ///     if (response.status == 429) limit.block("shop-7", feedback.wait().value_or(pause));
  Decision block(const KeyArg& key, SpanArg span) const;
  Decision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept;
  static constexpr Span max_block{SlidingWindowRule::max_block};  ///< 366 days
  /// Takes the newest `amount` units that some window holds out of the log of the key, whoever
  /// spent them, reservations first; all, if there are fewer. REQUIRES: their grants are not
  /// refunded afterwards. Errc::invalid_cost if `amount` is negative or above 2^52.
  Decision reward(const KeyArg& key, Cost amount) const;
  Decision reward(const KeyArg& key, Cost amount, std::error_code& error) const noexcept;

  /// Clears the log of the key, and ends a block.
  void reset(const KeyArg& key) const;
  void reset(const KeyArg& key, std::error_code& error) const noexcept;

  /// The step of try_acquire(), for a plan of several steps.
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1) const noexcept {
    return reserve_step(key, cost, Span{0});
  }
  /// The step of reserve().
  [[nodiscard]] Step reserve_step(const Key& key, Cost cost, SpanArg max_wait) const noexcept;
  /// The step of peek(): in a plan, a condition that charges nothing.
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept;
  /// The step of refund(). Its first output word is the number of units refunded.
  [[nodiscard]] Step refund_step(const Key& key, const Reservation& grant,
                                 Cost amount) const noexcept {
    return settle_step(key, grant, amount, SlidingWindowRule::Change::refund);
  }
  /// The step of settle() if it charges `units` more. Its first output word is how many of them.
  [[nodiscard]] Step charge_step(const Key& key, const Reservation& grant,
                                 Cost units) const noexcept {
    return settle_step(key, grant, units, SlidingWindowRule::Change::charge);
  }
  /// The step of block().
  [[nodiscard]] Step block_step(const Key& key, SpanArg span) const noexcept {
    const detail::CountedWindows& counted = *limit_.of(key);
    return step(sliding_window_block, key, counted, {counted.least, span.count(), counted.longest});
  }
  /// The step of reward(). Its first output word is the number of units taken out.
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    const detail::CountedWindows& counted = *limit_.of(key);
    return step(sliding_window_reward, key, counted,
                {counted.least, amount.value(), counted.longest});
  }
  /// The step of reset().
  [[nodiscard]] Step reset_step(const Key& key) const noexcept;

  /// What a plan's acquire_step() or reserve_step() for `cost` has granted: of the decision on it.
  [[nodiscard]] static Reservation reservation(const Decision& decision,
                                               std::span<const Word> output, Cost cost) noexcept {
    return {decision, cost.value(),
            output.size() < 3 ? std::span<const Word>() : output.subspan(1, 2)};
  }

  /// With a table, those of everyone.
  [[nodiscard]] std::span<const WindowLimit> windows() const noexcept {
    return limit_.everyone()->windows;
  }

  /// Describes the windows that can never bind, because others always refuse first. This is
  /// harmless in windows that are copied from an API's documentation; otherwise a limit or a
  /// span is probably misplaced. One text a window; empty if every window matters.
  ///
  ///     // {{10, 5s}, {5, 60s}}:
  ///     // "window 0 (10 in 5 s) can never bind: window 1 (5 in 1 min), which is wider,
  ///     //  admits at most 5 in 5 s"
  [[nodiscard]] static std::vector<std::string> redundant_windows(
      std::span<const WindowLimit> windows);
  [[nodiscard]] std::vector<std::string> redundant_windows() const {
    return redundant_windows(windows());
  }

  // For the library; see sluice/limiters/detail/sliding_window.hpp.
  [[nodiscard]] bool has_table() const noexcept { return limit_.has_table(); }
  struct Verbs;

 private:
  SlidingWindow(const StoreHandle& store, detail::TextArg name,
                detail::LimitOf<std::vector<WindowLimit>> limits);

  [[nodiscard]] Step settle_step(const Key& key, const Reservation& grant, Cost units,
                                 SlidingWindowRule::Change change) const noexcept;
  /// REQUIRES: args[0] is the least limit.
  [[nodiscard]] Step step(const Operation& operation, const Key& key,
                          const detail::CountedWindows& counted,
                          const Arguments& args) const noexcept {
    return detail::by_limit({&operation, named(key), args, nullptr, counted.words});
  }

  std::shared_ptr<const detail::CountedWindows> own_;  // null with a table
  detail::LimitOf<std::vector<WindowLimit>> limit_;
};

}  // namespace sluice

#include "sluice/limiters/detail/sliding_window.hpp"
