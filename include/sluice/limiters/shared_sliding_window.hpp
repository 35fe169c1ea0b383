// A sliding window limiter whose rate is stored next to its log, so that all clients follow a
// change. See sluice/rules/shared_sliding_window.hpp for the rule.
#pragma once

#include <array>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "sluice/decide.hpp"
#include "sluice/detail/acquire.hpp"
#include "sluice/limiters/waitable.hpp"
#include "sluice/quota.hpp"
#include "sluice/reservation.hpp"
#include "sluice/rules/shared_sliding_window.hpp"
#include "sluice/store_handle.hpp"

namespace sluice {

/// The scope of a shared sliding window.
enum class RateType : Word {
  overall = 0,     ///< all clients together
  per_client = 1,  ///< each client separately
};

/// The configuration in the store.
struct RateSetting {
  RateType type;
  Word rate;  ///< permits in any `interval`
  Span interval;
  Word version;  ///< differs after each change
};

struct SharedSlidingWindowOptions {
  /// The name of this client, for RateType::per_client. Empty: a random name; in a simulated world
  /// it is drawn from the seed.
  std::string client{};
  /// How long the configuration outlives its last use. Use one value for all clients.
  Span keep_alive = std::chrono::hours{24 * 30};
};

class SharedSlidingWindowAwaitable;

/// The two steps of one request, for a plan: one that checks the configuration, and one for the
/// permits. It owns what its steps view. REQUIRES: it lives until the plan was passed to the store.
class SharedSlidingWindowSteps {
 public:
  SharedSlidingWindowSteps() = default;  ///< no steps: there is no configuration

  [[nodiscard]] const Step& operator[](std::size_t i) const noexcept { return data()[i]; }
  [[nodiscard]] const Step* data() const noexcept { return steps_ ? steps_->data() : nullptr; }
  [[nodiscard]] const Step* begin() const noexcept { return data(); }
  [[nodiscard]] const Step* end() const noexcept { return data() + size(); }
  [[nodiscard]] std::size_t size() const noexcept { return steps_ ? steps_->size() : 0; }

 private:
  friend class SharedSlidingWindow;
  SharedSlidingWindowSteps(std::shared_ptr<const void> setting, const std::array<Step, 2>& steps)
      : setting_(std::move(setting)), steps_(steps) {}

  std::shared_ptr<const void> setting_;
  std::optional<std::array<Step, 2>> steps_;
};

/// Permits that SharedSlidingWindow::reserve() granted, possibly for a later time, with the
/// decision.
class [[nodiscard]] RateReservation : public Decision {
 public:
  RateReservation() = default;

  Word granted = 0;  ///< permits that are charged; fewer after refund()
  /// The wait from Decision::at until the reserved time.
  [[nodiscard]] Span wait() const noexcept { return retry_after; }
  /// The reserved time, by the store's clock. (Decision::at is the time of the decision.)
  [[nodiscard]] Time at() const noexcept { return Decision::at + retry_after; }

 private:
  friend class SharedSlidingWindow;
  Word settled_ = 0;                     // permits that settle() charged in addition
  std::shared_ptr<const void> setting_;  // SharedSlidingWindow::Known, if permits were charged
};

/// What happens to spent permits when the rate changes.
enum class SpentPermits : std::uint8_t {
  kept,       ///< they also count under the new rate
  forgotten,  ///< nothing is spent
};

/// Limits to exactly `rate` permits in any interval, with a rate that is stored in the store: every
/// client follows a change with its next request.
///
///     SharedSlidingWindow limiter{*store, "partner-api", "rate"};
///     limiter.try_configure(RateType::overall, 100, 1s);   // the first one wins
///     if (const Decision d = limiter.try_acquire(3); !d) retry_later(d.retry_after);
///
/// The limiter caches the configuration, and each request verifies it in the same round trip: one
/// store operation, and two more after a change. Thread-safe. Calls throw std::system_error or fill
/// an error_code; Errc::not_configured means that no rate was configured, or that it was not used
/// for keep_alive. Borrows or owns its store: see StoreHandle.
class SharedSlidingWindow : public Waitable {
 public:
  using Grant = Decision;                                          ///< what acquire() returns
  static constexpr const char* type_name = "SharedSlidingWindow";  ///< in messages of exceptions

  /// The result of a change.
  struct Change {
    bool changed;  ///< false: a rate was there, or the same one, and is kept
    Word version;  ///< of the rate now in force
  };

  /// `tag` and `name` are the key of the configuration. Throws std::invalid_argument if one of them
  /// is empty, one of them or the client's name is too long, or keep_alive is below 1 us or above
  /// 71 years.
  SharedSlidingWindow(const StoreHandle& store, detail::TextArg tag, detail::TextArg name,
                      SharedSlidingWindowOptions options = {});
  ~SharedSlidingWindow();
  SharedSlidingWindow(const SharedSlidingWindow&) = delete;
  SharedSlidingWindow& operator=(const SharedSlidingWindow&) = delete;

  /// Sets the rate if there is none. `rate` is 1 to 65,536 permits, `interval` 1 us to 366 days and
  /// at most keep_alive; otherwise, here and below, Errc::invalid_argument.
  Change try_configure(RateType type, Word rate, SpanArg interval) const;
  Change try_configure(RateType type, Word rate, SpanArg interval, std::error_code& error) const;
  /// Sets the rate. If spent permits are kept, any interval across the change, of the old or the
  /// new length, holds at most the larger number of permits that the two rates allow in it
  /// (docs/shared_sliding_window.md). If they are forgotten, or if the type changes, such an
  /// interval may hold as many as both rates allow together. The rate that is in force already
  /// changes nothing, unless spent permits are to be forgotten.
  Change configure(RateType type, Word rate, SpanArg interval,
                   SpentPermits spent = SpentPermits::kept) const;
  Change configure(RateType type, Word rate, SpanArg interval, SpentPermits spent,
                   std::error_code& error) const;
  /// The configuration in force, or none.
  [[nodiscard]] std::optional<RateSetting> config() const;
  [[nodiscard]] std::optional<RateSetting> config(std::error_code& error) const;

  /// Spends `permits` if they are available; never waits. `retry_after` of a refusal is exact.
  /// Errc::cost_exceeds_capacity if `permits` exceeds the rate.
  [[nodiscard]] Decision try_acquire(Cost permits = 1) const;
  [[nodiscard]] Decision try_acquire(Cost permits, std::error_code& error) const;
  /// Charges at most once under this id; see Plan::idempotent().
  [[nodiscard]] Decision try_acquire(Cost permits, const RequestId& id) const;
  [[nodiscard]] Decision try_acquire(Cost permits, const RequestId& id,
                                     std::error_code& error) const;

  /// Reserves `permits` at the first instant at which they are available, if that is at most
  /// `max_wait` ahead; the caller then waits. Reservations are in the order of arrival at the
  /// store, over all clients, and keep their time if the rate changes meanwhile.
  /// Errc::invalid_argument if max_wait is below zero or above 366 days.
  RateReservation reserve(Cost permits, SpanArg max_wait) const;
  RateReservation reserve(Cost permits, SpanArg max_wait, std::error_code& error) const;
  /// Refunds all charged permits that are still the newest of the log; returns their number. After
  /// a change that forgot them, a refund has no effect on other requests.
  Word cancel(RateReservation& reservation) const;
  Word cancel(RateReservation& reservation, std::error_code& error) const;
  /// Refunds `amount` of the permits in the same way. Errc::invalid_argument if that is more than
  /// is charged, Errc::invalid_cost if it is negative. Refund each permit once: permits of several
  /// clients at the same microsecond cannot be distinguished.
  Word refund(RateReservation& reservation, Cost amount) const;
  Word refund(RateReservation& reservation, Cost amount, std::error_code& error) const;
  /// Corrects an estimated cost: refunds the difference, or charges it at the current rate, at the
  /// first instant at which it is available, as reserve() does: later requests wait behind it.
  /// Nothing for a refusal. Errc::invalid_cost below zero; Errc::cost_exceeds_capacity, and nothing
  /// is charged, if the difference exceeds the rate. One round trip.
  Settlement settle(RateReservation& reservation, Cost true_cost) const;
  Settlement settle(RateReservation& reservation, Cost true_cost, std::error_code& error) const;

  /// Schedules no new grant before `span` from now, for all clients or, with RateType::per_client,
  /// for this one; existing reservations keep their time. A later end of an earlier block stays in
  /// force, and configure() keeps a block unless it forgets spent permits or changes the type.
  /// `span`: 0, which changes nothing, to max_block; otherwise Errc::invalid_argument.
  Decision block(SpanArg span) const;
  Decision block(SpanArg span, std::error_code& error) const;
  /// Refunds the newest `permits` of the log, whichever client spent them, reservations first; all,
  /// if there are fewer. Errc::invalid_cost if `permits` is negative or above 2^52.
  Decision reward(Cost permits) const;
  Decision reward(Cost permits, std::error_code& error) const;
  static constexpr Span max_block{SharedSlidingWindowRule::max_interval};  ///< 366 days

  /// try_acquire() with a callback: calls `handler(std::error_code, Decision)` once, before this
  /// returns or on a thread of the store; see decide_then(). REQUIRES, here and below: the limiter
  /// outlives the call. One more allocation.
  template <AnswerHandler Handler>
  void try_acquire_then(Cost permits, Handler handler) const {
    ask_then(permits, detail::completion_of(std::move(handler)));
  }
  /// try_acquire() as a future; a failure is a std::system_error in it.
  [[nodiscard]] std::future<Decision> future_try_acquire(Cost permits = 1) const;
  /// `const auto [error, decision] = co_await limiter.awaitable_try_acquire(3);`
  [[nodiscard]] SharedSlidingWindowAwaitable awaitable_try_acquire(Cost permits = 1) const;

  /// Waits until `permits` are granted, or until the deadline; blocks this thread meanwhile. The
  /// callers of this object are served in order; those of several ask at the same hint. REQUIRES:
  /// the limiter outlives the wait. See KeyedLimiter::acquire().
  [[nodiscard]] Decision acquire(Cost permits, const Deadline& deadline,
                                 const WaitOptions& options = {}) const;
  [[nodiscard]] Decision acquire(Cost permits, const Deadline& deadline, const WaitOptions& options,
                                 std::error_code& error) const noexcept;
  /// The number of callers of this object that wait.
  [[nodiscard]] std::size_t waiting() const;

  /// The decision that try_acquire() would make; spends nothing.
  [[nodiscard]] Decision peek(Cost permits = 1) const;
  [[nodiscard]] Decision peek(Cost permits, std::error_code& error) const;
  /// The number of permits that are available now.
  [[nodiscard]] Word available_permits() const;
  [[nodiscard]] Word available_permits(std::error_code& error) const;

  /// The two steps of try_acquire(), for a plan with other steps, by the cached configuration. If
  /// there is none, or if its rate is below `permits`, this call reads it first, which blocks. If
  /// the plan fails with Errc::config_changed or Errc::not_configured, nothing was charged: call
  /// refresh() and make the steps again. On an error there are no steps.
  [[nodiscard]] SharedSlidingWindowSteps acquire_steps(Cost permits = 1) const;
  [[nodiscard]] SharedSlidingWindowSteps acquire_steps(Cost permits, std::error_code& error) const;
  /// The steps of peek(): in a plan, a condition that charges nothing.
  [[nodiscard]] SharedSlidingWindowSteps peek_steps(Cost permits = 1) const;
  [[nodiscard]] SharedSlidingWindowSteps peek_steps(Cost permits, std::error_code& error) const;
  /// The steps of block() and reward().
  [[nodiscard]] SharedSlidingWindowSteps block_steps(SpanArg span) const;
  [[nodiscard]] SharedSlidingWindowSteps block_steps(SpanArg span, std::error_code& error) const;
  [[nodiscard]] SharedSlidingWindowSteps reward_steps(Cost permits) const;
  [[nodiscard]] SharedSlidingWindowSteps reward_steps(Cost permits, std::error_code& error) const;
  /// Reads the configuration for the next steps. Errc::not_configured if there is none.
  void refresh() const;
  void refresh(std::error_code& error) const;

  [[nodiscard]] const std::string& client() const noexcept { return options_.client; }

  // For the library; see sluice/limiters/detail/shared_sliding_window.hpp.
  struct Verbs;

 private:
  friend class SharedSlidingWindowAwaitable;
  struct Known;
  struct Question;
  struct Answered;
  class Asking;
  class Changing;

  [[nodiscard]] detail::LimiterKey key() const noexcept {
    return {Key{tag_, name_}, store_.address()};
  }
  [[nodiscard]] Step configure_step(SharedSlidingWindowRule::Mode mode, RateType type, Word rate,
                                    Span interval) const noexcept;
  [[nodiscard]] Change change_as(const char* verb, const Step& step) const;
  [[nodiscard]] std::string log_name(Word generation, RateType type) const;
  [[nodiscard]] Step read_step() const noexcept;
  std::shared_ptr<const Known> known() const;
  std::shared_ptr<const Known> remember(std::span<const Word> output,
                                        std::error_code& error) const noexcept;
  [[nodiscard]] std::shared_ptr<const Known> read(std::error_code& error) const;
  /// The configuration that a read_step() found.
  [[nodiscard]] std::optional<RateSetting> found(const Outcome& outcome,
                                                 std::error_code& error) const noexcept;
  [[nodiscard]] std::array<Step, 2> steps_of(const Known& setting, const Question& question) const;
  SharedSlidingWindowSteps steps(const Question& question, std::error_code& error) const;
  Answered ask(const Question& question, std::error_code& error) const;
  [[nodiscard]] static RateReservation reservation(Answered answered, Cost permits);
  /// A step with the arguments of a request, for exceptions.
  [[nodiscard]] Step asked_step(const Question& question) const;
  /// ask() that throws; `verb` is the name of the call.
  Answered ask_as(const char* verb, const Question& question) const;
  SharedSlidingWindowSteps steps_as(const char* verb, const Question& question) const;
  /// The exception of a call where either the configuration or the log may be at fault.
  [[nodiscard]] std::system_error failed(const char* verb, const std::error_code& error,
                                         const Question& question) const;
  /// The exception of a refund.
  [[nodiscard]] std::system_error failed_to_refund(const char* verb, const std::error_code& error,
                                                   const RateReservation& reservation,
                                                   Cost amount) const;
  void ask_then(Cost permits, Completion done) const;
  /// Sets `used` to the configuration by which the request was decided.
  void acquire_then(Cost permits, std::shared_ptr<const Known>& used,
                    Completion done) const noexcept;
  void refund_then(const Known& used, Cost permits, const Decision& grant,
                   Completion done) const noexcept;

  StoreHandle store_;
  std::string tag_;
  std::string name_;
  SharedSlidingWindowOptions options_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Known> known_;  // guarded by mutex_
  detail::Life life_;
};

}  // namespace sluice

#include "sluice/limiters/detail/shared_sliding_window.hpp"
