// A rate limit that all clients read from the store. See sluice/rules/shared_sliding_window.hpp for
// the rule.
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
#include "sluice/quota.hpp"
#include "sluice/reservation.hpp"
#include "sluice/rules/shared_sliding_window.hpp"
#include "sluice/store_handle.hpp"

namespace sluice {

/// Whom a shared sliding window limits.
enum class RateType : Word {
  overall = 0,     ///< all clients together
  per_client = 1,  ///< each client for itself
};

/// A rate as it is in the store.
struct RateSetting {
  RateType type;
  Word rate;  ///< permits in any interval
  Span interval;
  Word version;  ///< another after each change
};

struct SharedSlidingWindowOptions {
  /// Who this client is, for RateType::per_client. Empty: a name drawn at random, in a simulated
  /// world from its seed.
  std::string client{};
  /// How long the setting outlives its last use. Give all clients the same.
  Span keep_alive = std::chrono::hours{24 * 30};
};

class SharedSlidingWindowAwaitable;

/// What a request asks, for a plan: that the setting still stands, then for the permits. Keeps
/// alive what its steps view. REQUIRES: it lives until the plan was handed to the store.
class SharedSlidingWindowSteps {
 public:
  SharedSlidingWindowSteps() = default;  ///< no steps: there is no setting

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

/// Permits that SharedSlidingWindow::reserve() granted, perhaps for a time that lies ahead, and the
/// decision that it is.
class [[nodiscard]] RateReservation : public Decision {
 public:
  RateReservation() = default;

  Word granted = 0;  ///< permits that are charged; less after some were given back
  /// How long to wait, from Decision::at, until the grant's time.
  [[nodiscard]] Span wait() const noexcept { return retry_after; }
  /// The grant's time, by the store's clock. (Decision::at is when it was decided.)
  [[nodiscard]] Time at() const noexcept { return Decision::at + retry_after; }

 private:
  friend class SharedSlidingWindow;
  Word settled_ = 0;                     // beyond them, by settle()
  std::shared_ptr<const void> setting_;  // SharedSlidingWindow::Known, if permits were charged
};

/// What becomes of the permits that are spent when the rate changes.
enum class SpentPermits : std::uint8_t {
  kept,       ///< they count under the new rate
  forgotten,  ///< nothing is spent
};

/// At most `rate` permits in any interval, exactly, by a rate that lives in the store: every client
/// follows a change with its next request.
///
///     SharedSlidingWindow limiter{*store, "partner-api", "rate"};
///     limiter.try_configure(RateType::overall, 100, 1s);   // the first one wins
///     if (const Decision d = limiter.try_acquire(3); !d) retry_later(d.retry_after);
///
/// The setting is remembered here, and every request proves in the same trip that it still stands:
/// one store operation, and two more when it has changed. Thread-safe. Calls throw
/// std::system_error or fill an error_code; Errc::not_configured means that no rate was set, or
/// that it was not used for keep_alive. Borrows or owns its store: see StoreHandle.
class SharedSlidingWindow : public Waitable {
 public:
  static constexpr const char* type_name = "SharedSlidingWindow";  ///< in texts of exceptions
  class Waited;

  /// What a change ended in.
  struct Change {
    bool changed;  ///< false: try_configure() found a rate and left it alone
    Word version;  ///< the one in force now
  };

  /// Limits by the setting under Key{tag, name}. Throws std::invalid_argument if the tag or name is
  /// empty, one of them or the client's name is too long, or keep_alive is below 1 us or above 71
  /// years.
  SharedSlidingWindow(const StoreHandle& store, std::string tag, std::string name,
                      SharedSlidingWindowOptions options = {});
  ~SharedSlidingWindow();
  SharedSlidingWindow(const SharedSlidingWindow&) = delete;
  SharedSlidingWindow& operator=(const SharedSlidingWindow&) = delete;

  /// Sets the rate if there is none. `rate` is 1 to 65,536 permits and `interval` 1 us to 366 days,
  /// but at most keep_alive; else, here and below, Errc::invalid_argument.
  Change try_configure(RateType type, Word rate, Span interval) const;
  Change try_configure(RateType type, Word rate, Span interval, std::error_code& error) const;
  /// Sets the rate. With what is spent kept, no interval over the change, as long as the old or the
  /// new one, holds more than the larger of what the two rates allow in it
  /// (docs/shared_sliding_window.md). With it forgotten, or with another type, an interval over the
  /// change may hold as much as both rates allow.
  Change configure(RateType type, Word rate, Span interval,
                   SpentPermits spent = SpentPermits::kept) const;
  Change configure(RateType type, Word rate, Span interval, SpentPermits spent,
                   std::error_code& error) const;
  /// The rate in force, or none.
  [[nodiscard]] std::optional<RateSetting> config() const;
  [[nodiscard]] std::optional<RateSetting> config(std::error_code& error) const;

  /// Spends `permits` if they are there; never waits. The hint is exact: until enough of them are.
  /// Errc::cost_exceeds_capacity if the rate is smaller.
  [[nodiscard]] Decision try_acquire(Cost permits = 1) const;
  [[nodiscard]] Decision try_acquire(Cost permits, std::error_code& error) const;
  /// Charges once, however often it is asked under this id; see Plan::idempotent().
  [[nodiscard]] Decision try_acquire(Cost permits, const RequestId& id) const;
  [[nodiscard]] Decision try_acquire(Cost permits, const RequestId& id,
                                     std::error_code& error) const;

  /// Spends `permits` at the first instant at which enough of them are there, if that is at most
  /// `max_wait` ahead. In the order of arrival at the store, whichever client asked; the caller
  /// waits, and keeps the time that it was given under a rate that changes meanwhile.
  /// Errc::invalid_argument if max_wait is below zero or above 366 days.
  RateReservation reserve(Cost permits, Span max_wait) const;
  RateReservation reserve(Cost permits, Span max_wait, std::error_code& error) const;
  /// Gives back all that is charged, as far as it is still the newest of the log; says how many
  /// permits came back. Those that a change has forgotten leave a log that nobody asks.
  Word cancel(RateReservation& reservation) const;
  Word cancel(RateReservation& reservation, std::error_code& error) const;
  /// Gives back `amount` of it, in the same way. Errc::invalid_argument if that is more than is
  /// charged, Errc::invalid_cost if it is negative. Of several clients' permits of one microsecond
  /// none can be told from another's: give each back once.
  Word refund(RateReservation& reservation, Cost amount) const;
  Word refund(RateReservation& reservation, Cost amount, std::error_code& error) const;
  /// After an estimate the true cost: refunds the difference, or charges it by the rate of now, at
  /// the first instant at which it is there, as reserve() does: others wait behind it. Nothing of a
  /// refusal. Errc::invalid_cost below zero; Errc::cost_exceeds_capacity, and nothing is charged,
  /// if the difference is above the rate. One trip.
  Settlement settle(RateReservation& reservation, Cost true_cost) const;
  Settlement settle(RateReservation& reservation, Cost true_cost, std::error_code& error) const;

  /// Grants nothing for a time before `span` from now, but what was promised before: to all
  /// clients, or to this one, if the rate is one for each. A later end that stands already stays,
  /// and configure() keeps it, unless it forgets what is spent or changes the type.
  /// `span`: 0, which changes nothing, to max_block; else Errc::invalid_argument.
  Decision block(Span span) const;
  Decision block(Span span, std::error_code& error) const;
  /// Gives back the newest `permits` of the log, whoever took them, reserved ones first; of more
  /// than there are all. Errc::invalid_cost if that is negative or above 2^52.
  Decision reward(Cost permits) const;
  Decision reward(Cost permits, std::error_code& error) const;
  static constexpr Span max_block{SharedSlidingWindowRule::max_interval};  ///< 366 days

  /// try_acquire() that calls `handler(std::error_code, Decision)` once, before this returns or on
  /// a thread of the store; see decide_then(). REQUIRES, here and below: the limiter outlives the
  /// call. One more allocation.
  template <AnswerHandler Handler>
  void try_acquire_then(Cost permits, Handler handler) const {
    ask_then(permits, detail::completion_of(std::move(handler)));
  }
  /// try_acquire() as a future; a failure is a std::system_error in it.
  [[nodiscard]] std::future<Decision> future_try_acquire(Cost permits = 1) const;
  /// `const auto [error, decision] = co_await limiter.awaitable_try_acquire(3);`
  [[nodiscard]] SharedSlidingWindowAwaitable awaitable_try_acquire(Cost permits = 1) const;

  /// Waits until `permits` are granted, or until the deadline; blocks this thread meanwhile. In the
  /// order in which the store was asked, whichever client asked; one store operation, if the
  /// setting is known. The answer's retry_after is how long the grant lay ahead, and it has passed;
  /// of a refusal, when it could have been granted. Who waits keeps the time that it was given
  /// under the rate of then. REQUIRES: the limiter outlives the wait. See KeyedLimiter::acquire().
  [[nodiscard]] Decision acquire(Cost permits, const Deadline& deadline,
                                 const WaitOptions& options = {}) const;
  [[nodiscard]] Decision acquire(Cost permits, const Deadline& deadline, const WaitOptions& options,
                                 std::error_code& error) const noexcept;
  /// Callers of this object that wait.
  [[nodiscard]] std::size_t waiting() const;

  /// What try_acquire() would answer; spends nothing.
  [[nodiscard]] Decision peek(Cost permits = 1) const;
  [[nodiscard]] Decision peek(Cost permits, std::error_code& error) const;
  /// How many permits are there now.
  [[nodiscard]] Word available_permits() const;
  [[nodiscard]] Word available_permits(std::error_code& error) const;

  /// The two steps that try_acquire() asks, for a plan with others, by the setting that is
  /// remembered; it is read first, which waits for the store, if there is none or if its rate is
  /// below `permits`. Should the plan end in Errc::config_changed or Errc::not_configured, the
  /// setting is not what it was and nothing was charged: refresh(), and make the steps anew. No
  /// steps on an error.
  [[nodiscard]] SharedSlidingWindowSteps acquire_steps(Cost permits = 1) const;
  [[nodiscard]] SharedSlidingWindowSteps acquire_steps(Cost permits, std::error_code& error) const;
  /// The steps that peek() asks: in a plan, a condition that charges nothing.
  [[nodiscard]] SharedSlidingWindowSteps peek_steps(Cost permits = 1) const;
  [[nodiscard]] SharedSlidingWindowSteps peek_steps(Cost permits, std::error_code& error) const;
  /// The steps that block() and reward() ask.
  [[nodiscard]] SharedSlidingWindowSteps block_steps(Span span) const;
  [[nodiscard]] SharedSlidingWindowSteps block_steps(Span span, std::error_code& error) const;
  [[nodiscard]] SharedSlidingWindowSteps reward_steps(Cost permits) const;
  [[nodiscard]] SharedSlidingWindowSteps reward_steps(Cost permits, std::error_code& error) const;
  /// Reads the setting that the next steps are made by. Errc::not_configured without a rate.
  void refresh() const;
  void refresh(std::error_code& error) const;

  [[nodiscard]] const std::string& client() const noexcept { return options_.client; }

 private:
  friend class SharedSlidingWindowAwaitable;
  struct Known;
  class Asking;

  [[nodiscard]] Key key() const noexcept { return {tag_, name_}; }
  [[nodiscard]] Step set_step(SharedSlidingWindowRule::Mode mode, RateType type, Word rate,
                              Span interval) const noexcept;
  [[nodiscard]] Change change(const Step& step, std::error_code& error) const;
  [[nodiscard]] Change change_as(const char* verb, const Step& step) const;
  [[nodiscard]] std::string log_name(Word generation, RateType type) const;
  [[nodiscard]] Step read_step() const noexcept;
  std::shared_ptr<const Known> known() const;
  std::shared_ptr<const Known> remember(std::span<const Word> output,
                                        std::error_code& error) const noexcept;
  std::shared_ptr<const Known> read(std::error_code& error) const;
  enum class Verb : std::uint8_t { acquire, peek, block, reward };
  /// What is asked by the setting that is known, or by the one that is read if it has changed.
  struct Question {
    Cost permits;
    Verb verb = Verb::acquire;
    Span span{0};  // to wait at most, or to block
    std::optional<RequestId> id{};
    /// What the rate must not be below.
    [[nodiscard]] Word needed() const noexcept {
      return verb == Verb::reward ? 0 : permits.value();
    }
  };
  [[nodiscard]] std::array<Step, 2> steps_of(const Known& setting, const Question& question) const;
  SharedSlidingWindowSteps steps(const Question& question, std::error_code& error) const;
  /// The answer, and the setting that it was made by; of an error, the setting whose log was at
  /// fault, or none.
  struct Answered {
    Decision decision;
    std::shared_ptr<const Known> used;
  };
  Answered ask(const Question& question, std::error_code& error) const;
  [[nodiscard]] static RateReservation reservation(Answered answered, Cost permits);
  /// A step that tells an exception what was asked, by the rate that is known.
  [[nodiscard]] Step asked_step(const Question& question) const;
  /// The same call; throws in the name of `verb`.
  Answered ask_as(const char* verb, const Question& question) const;
  SharedSlidingWindowSteps steps_as(const char* verb, const Question& question) const;
  /// What a call throws of which it is not known whether the setting or the log was at fault.
  [[nodiscard]] std::system_error failed(const char* verb, const std::error_code& error,
                                         const Question& question) const;
  /// What a call that gives back throws.
  [[nodiscard]] std::system_error failed_to_refund(const char* verb, const std::error_code& error,
                                                   const RateReservation& reservation,
                                                   Cost amount) const;
  void ask_then(Cost permits, Completion done) const;
  /// `used` becomes the setting that the answer was made by.
  void reserve_then(Cost permits, Span max_wait, std::shared_ptr<const Known>& used,
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

/// A limiter as waiters hold it: see detail::WaiterFor.
class SharedSlidingWindow::Waited {
 public:
  static constexpr const char* type_name = SharedSlidingWindow::type_name;
  struct Waiting {
    using Grant = Decision;
    struct Request {
      explicit Request(Cost cost)
          : permits(cost), used(std::make_shared<std::shared_ptr<const Known>>()) {}
      Cost permits;
      std::shared_ptr<std::shared_ptr<const Known>> used;  // what the answer was made by
    };
    static constexpr bool freed_early = false;
    static Key key(const Waited& waited, const Request&) noexcept { return waited.limiter_->key(); }
    static const std::shared_ptr<detail::WaitQueues>& queues(const Waited& waited) noexcept {
      return waited.limiter_->queues();
    }
    static void borrow_store(Waited&) noexcept {}  // it has none of its own
    static Span reach(const Waited&) noexcept;
    static std::system_error failed(const detail::CallName& call, const std::error_code& error,
                                    const Waited& waited, const Request& request) {
      return waited.limiter_->failed(call.verb, error, {request.permits});
    }
    static void ask(const Waited& waited, const Request& request, Span max_wait,
                    Completion done) noexcept {
      if (waited.life_.is_over()) return done.fail(Errc::shut_down);
      waited.limiter_->reserve_then(request.permits, max_wait, *request.used, std::move(done));
    }
    static Grant grant(const Waited&, const Request&, const Outcome& outcome, Time) noexcept {
      return outcome.decision;
    }
    static void refund(const Waited& waited, const Request& request, Grant& grant,
                       Completion done) noexcept {
      if (waited.life_.is_over()) return done.fail(Errc::shut_down);
      waited.limiter_->refund_then(**request.used, request.permits, grant, std::move(done));
    }
  };

  explicit Waited(const SharedSlidingWindow& limiter) noexcept
      : limiter_(&limiter), life_(limiter.life_.view()) {}
  [[nodiscard]] Store& store() const noexcept { return *limiter_->store_; }

 private:
  const SharedSlidingWindow* limiter_;
  detail::Life::View life_;  // waits end with Errc::shut_down when the limiter has gone
};

/// A request for permits, to be awaited in the expression that makes it; see DecideAwaitable.
class [[nodiscard]] SharedSlidingWindowAwaitable : public detail::Awaited {
 public:
  SharedSlidingWindowAwaitable(const SharedSlidingWindow& limiter, Cost permits)
      : limiter_(limiter), permits_(permits) {}
  bool await_suspend(std::coroutine_handle<> waiter) {
    return suspend(waiter,
                   [this](Completion done) { limiter_.ask_then(permits_, std::move(done)); });
  }

 private:
  const SharedSlidingWindow& limiter_;
  Cost permits_;
};

inline SharedSlidingWindowAwaitable SharedSlidingWindow::awaitable_try_acquire(Cost permits) const {
  return {*this, permits};
}

}  // namespace sluice
