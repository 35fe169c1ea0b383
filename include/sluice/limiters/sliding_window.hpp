// The sliding windows limiter, on any store. See sluice/rules/sliding_window.hpp for the
// rule.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "sluice/detail/keyed_limiter.hpp"
#include "sluice/limiters/window_limit.hpp"
#include "sluice/reservation.hpp"
#include "sluice/rules/sliding_window.hpp"

namespace sluice {

/// A decision with what remains of each window after it. Decision::part is the window that makes a
/// refused request wait longest, or of an admitted one that with the least remaining; `count` if
/// that is a block.
struct WindowsDecision : Decision {
  std::array<Word, SlidingWindowRule::max_windows> left{};
  std::size_t count = 0;

  /// Units, in the order in which the windows were given.
  [[nodiscard]] std::span<const Word> windows() const noexcept { return {left.data(), count}; }
};

/// A grant that may lie ahead, and the decision that it is.
struct [[nodiscard]] WindowReservation : WindowsDecision {
  WindowReservation() = default;
  WindowReservation(const WindowsDecision& decision, Word charged) noexcept
      : WindowsDecision(decision), granted(charged) {}

  Word granted = 0;  ///< units that are charged; zero when refused
  /// How long to wait, from Decision::at, until the grant's time.
  [[nodiscard]] Span wait() const noexcept { return retry_after; }
  /// The grant's time, by the store's clock. (Decision::at is when it was decided.)
  [[nodiscard]] Time at() const noexcept { return Decision::at + retry_after; }
};

/// Limits each key by any number of windows at once, exactly. Immutable: one object serves any
/// number of threads.
///
///     SlidingWindow limit{*store, "partner", {{25, 5s}, {400, 2min}}};
///     if (const auto d = limit.try_acquire("shop-7"); !d) retry_later(d.retry_after);
///
/// A key without a name takes the limiter's. Limiters of the same name and spans on the same store
/// share their logs, in any order of the windows and under any limits: what was spent stays spent.
/// Other spans are another count. Every form of the call is in KeyedLimiter; those here tell all
/// windows. Borrows or owns its store: see StoreHandle. REQUIRES: the limiter outlives every step
/// it has made.
class SlidingWindow : public KeyedLimiter<SlidingWindow> {
 public:
  static constexpr const char* type_name = "SlidingWindow";  ///< in texts of exceptions

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, if there are no windows
  /// or more than SlidingWindowRule::max_windows, if two have the same span, or if one has a limit
  /// or a span out of the rule's range; the message names the value and what is allowed. Windows
  /// that can never bind beside the others are taken as they are: redundant_windows() tells them.
  SlidingWindow(const StoreHandle& store, detail::TextArg name, std::vector<WindowLimit> windows);
  /// The same, for windows in braces.
  SlidingWindow(const StoreHandle& store, detail::TextArg name,
                std::initializer_list<WindowLimit> windows)
      : SlidingWindow(store, name, std::vector<WindowLimit>(windows)) {}

  /// As in KeyedLimiter, with every window.
  [[nodiscard]] WindowsDecision try_acquire(const Key& key, Cost cost = 1) const;
  [[nodiscard]] WindowsDecision try_acquire(const Key& key, std::error_code& error) const noexcept {
    return try_acquire(key, 1, error);
  }
  [[nodiscard]] WindowsDecision try_acquire(const Key& key, Cost cost,
                                            std::error_code& error) const noexcept {
    return decide_all(acquire_step(key, cost), error);
  }
  [[nodiscard]] WindowsDecision try_acquire(const Key& key, Cost cost, const RequestId& id) const;
  [[nodiscard]] WindowsDecision try_acquire(const Key& key, Cost cost, const RequestId& id,
                                            std::error_code& error) const noexcept {
    return decide_all(Plan(acquire_step(key, cost)).idempotent(id), error);
  }
  [[nodiscard]] WindowsDecision peek(const Key& key, Cost cost = 1) const;
  [[nodiscard]] WindowsDecision peek(const Key& key, std::error_code& error) const noexcept {
    return peek(key, 1, error);
  }
  [[nodiscard]] WindowsDecision peek(const Key& key, Cost cost,
                                     std::error_code& error) const noexcept {
    return decide_all(peek_step(key, cost), error);
  }

  /// Spends `cost` at the first instant at which all windows admit it, if that is at most
  /// `max_wait` ahead: then it is allowed, and retry_after says how long to wait. In order of
  /// arrival: nothing overtakes a reservation, and what remains meanwhile is 0.
  /// Throws std::system_error; Errc::invalid_argument if max_wait is below zero or above 366 days.
  WindowReservation reserve(const Key& key, Cost cost, Span max_wait) const;
  WindowReservation reserve(const Key& key, Cost cost, Span max_wait,
                            std::error_code& error) const noexcept;

  /// Gives a reservation back, once, and says how many units came back: all of them as long as
  /// they are the newest of the key's log, else none. Later ones were placed behind it, and only
  /// the end of a log can be taken off without moving the rest. From the reservation's time on all
  /// is as if it had never been asked for; until then nothing is admitted that would not have been,
  /// but what had left a full log to make room may count for longer, up to that time.
  Word cancel(const Key& key, const WindowReservation& reservation) const;
  Word cancel(const Key& key, const WindowReservation& reservation,
              std::error_code& error) const noexcept;

  /// Gives up to `unused` units of an allowed decision back, as far as they are still the newest
  /// of the key's log; says how many came back. Errc::invalid_cost if it is negative
  /// or above 2^52.
  Word refund(const Key& key, const Decision& grant, Cost unused) const;
  Word refund(const Key& key, const Decision& grant, Cost unused,
              std::error_code& error) const noexcept;

  /// After an estimate the true cost: gives the difference back as refund() does, or charges it at
  /// the first instant at which all windows admit it, as reserve() does: no window ever holds more
  /// than its limit, and others wait behind it. Nothing of a refusal. Errc::cost_exceeds_capacity,
  /// and nothing is charged, if the difference is above the smallest limit; Errc::invalid_cost if a
  /// cost is negative. One store operation.
  ///
  ///     const auto taken = limit.try_acquire("shop-7", 100);
  ///     limit.settle("shop-7", taken, {.estimated = 100, .actual = tokens_used});
  Settlement settle(const Key& key, const Decision& taken, const SettledCost& cost) const;
  Settlement settle(const Key& key, const Decision& taken, const SettledCost& cost,
                    std::error_code& error) const noexcept;

  /// Grants nothing for a time before `span` from now, whatever the windows are set to; what was
  /// reserved before stays promised. Afterwards all goes on as the log says. A later end that
  /// stands already stays. The answer's retry_after is 0; `reset_after` says when the key means
  /// nothing any more. Brings these windows into force, as a grant does. `span`: 0, which changes
  /// nothing, to max_block; else Errc::invalid_argument.
  ///
  ///     if (response.status == 429) limit.block("shop-7", feedback.wait());
  WindowsDecision block(const Key& key, Span span) const;
  WindowsDecision block(const Key& key, Span span, std::error_code& error) const noexcept {
    return decide_all(block_step(key, span), error);
  }
  static constexpr Span max_block{SlidingWindowRule::max_block};  ///< 366 days
  /// Forgets the newest `amount` units of the key, whoever took them, reserved ones first; of more
  /// than there are all. Their grants must not be given back. Errc::invalid_cost if `amount`
  /// is negative or above 2^52.
  WindowsDecision reward(const Key& key, Cost amount) const;
  WindowsDecision reward(const Key& key, Cost amount, std::error_code& error) const noexcept {
    return decide_all(reward_step(key, amount), error);
  }

  /// Forgets all that the key has spent, and a block.
  void reset(const Key& key) const;
  void reset(const Key& key, std::error_code& error) const noexcept;

  /// The step that try_acquire() asks, for a plan of several steps; with max_wait, reserve().
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost = 1,
                                  Span max_wait = Span{0}) const noexcept;
  /// The step that peek() asks: in a plan, a condition that charges nothing.
  [[nodiscard]] Step peek_step(const Key& key, Cost cost = 1) const noexcept;
  /// The step that refund() asks. Its first detail is how many units come back.
  [[nodiscard]] Step refund_step(const Key& key, const Decision& grant, Cost units) const noexcept;
  /// The step that settle() asks.
  [[nodiscard]] Step settle_step(const Key& key, const Decision& taken,
                                 const SettledCost& cost) const noexcept;
  /// The step that block() asks.
  [[nodiscard]] Step block_step(const Key& key, Span span) const noexcept {
    return step(sliding_window_block, key, {least_, span.count(), longest_});
  }
  /// The step that reward() asks. Its first detail is how many units come back that some window
  /// still held.
  [[nodiscard]] Step reward_step(const Key& key, Cost amount) const noexcept {
    return step(sliding_window_reward, key, {least_, amount.value(), longest_});
  }
  /// The step that reset() asks.
  [[nodiscard]] Step reset_step(const Key& key) const noexcept;

  [[nodiscard]] std::span<const WindowLimit> windows() const noexcept { return windows_; }

  /// The windows that can never bind, because others always refuse first: harmless where they are
  /// copied from an upstream's page, else probably a limit or a span in the wrong place. A text
  /// each, with both windows; empty if every window matters.
  ///
  ///     // {{10, 5s}, {5, 60s}}: "window 0 (10 in 5 s) can never bind: window 1 (5 in 1 min),
  ///     which
  ///     // is wider, admits at most 5 in 5 s"
  [[nodiscard]] static std::vector<std::string> redundant_windows(
      std::span<const WindowLimit> windows);
  [[nodiscard]] std::vector<std::string> redundant_windows() const {
    return redundant_windows(windows_);
  }

  struct Waiting;  ///< how acquire() waits: for detail::WaiterFor

 private:
  friend class SharedSlidingWindow;
  /// Logs under keys of this unit, whatever the spans.
  SlidingWindow(const StoreHandle& store, detail::TextArg name, std::string unit,
                std::vector<WindowLimit>&& windows);

  WindowsDecision decide_all(const Plan& plan, std::error_code& error) const noexcept;
  [[nodiscard]] WindowsDecision told(const Decision& decision,
                                     std::span<const Word> output) const noexcept;
  [[nodiscard]] Step step(const Operation& operation, const Key& key,
                          const Arguments& args) const noexcept {
    return {&operation, named(key), args, nullptr, table_};
  }

  std::vector<WindowLimit> windows_;
  std::vector<Word> table_;
  Word least_ = 0;
  Word longest_ = 0;
};

/// How acquire() waits; see detail::WaiterFor.
struct SlidingWindow::Waiting : KeyedLimiter<SlidingWindow>::Waiting {
  using Grant = WindowReservation;
  static Span reach(const SlidingWindow&) noexcept {
    return Span{SlidingWindowRule::max_ahead_of_time};
  }
  static void ask(const SlidingWindow& windows, const Request& request, Span max_wait,
                  Completion done) noexcept {
    windows.store().execute(windows.acquire_step(request.key(), request.cost, max_wait),
                            std::move(done));
  }
  static Grant grant(const SlidingWindow& windows, const Request& request, const Outcome& outcome,
                     Time) noexcept {
    return {windows.told(outcome.decision, outcome.output),
            outcome.decision.allowed ? request.cost.value() : 0};
  }
  static void refund(const SlidingWindow& windows, const Request& request, Grant& grant,
                     Completion done) noexcept {
    windows.store().execute(windows.refund_step(request.key(), grant, grant.granted),
                            std::move(done));
  }
};

}  // namespace sluice
