// One call that waits. For those who write ways of waiting: limiters have acquire(), and
// sluice::asio has async_acquire().
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "sluice/calls/grants.hpp"
#include "sluice/detail/caller.hpp"
#include "sluice/detail/claimed_limit.hpp"
#include "sluice/detail/claimed_plan.hpp"
#include "sluice/detail/fork_count.hpp"
#include "sluice/detail/queued_call.hpp"
#include "sluice/detail/store_ref.hpp"

namespace sluice::detail {

struct PendingActions;
class Waiter;

/// The requests of a call, of which one at a time is at the store. Under the mutex of the waits,
/// but for handed_over(), and for sent(), which the thread that has the answer calls as well.
class RequestAtStore {
 public:
  /// It is sent now.
  void begin(Time now, Time deadline) noexcept {
    answer_by_ = answer_by(now, deadline);
    ++count_;
    preparations_ = 0;
    sent_ = now;
  }
  /// Another one of those that are made before the limits have answered.
  void begin_another(Time now, Time deadline) noexcept {
    ++count_;
    answer_by_ = std::max(answer_by_, answer_by(now, deadline));
  }
  /// Whether that may follow, since what was prepared had changed when it arrived.
  [[nodiscard]] bool may_prepare_again() noexcept { return ++preparations_ < most_preparations; }
  /// The limits are asked now.
  void ask(Time now) noexcept { sent_ = now; }
  /// It was passed to the store, which has returned.
  void handed_over() noexcept { handed_over_.fetch_add(1); }
  void end() noexcept { answer_by_ = Time::max(); }

  [[nodiscard]] Time sent() const noexcept { return sent_; }
  /// When the wait ends without its answer.
  [[nodiscard]] Time answer_by() const noexcept { return answer_by_; }
  /// Not while it is handed over: the caller may destroy the store once the wait ends.
  [[nodiscard]] bool is_overdue(Time now) const noexcept {
    return now >= answer_by_ && handed_over_.load() == count_;
  }

 private:
  static constexpr unsigned most_preparations = 16;
  // A request that is sent at the end of a wait has this long for its answer: more than the
  // `within` of a FallbackStore, whose policy answers in time.
  static constexpr Span shortest_trip = std::chrono::milliseconds{150};

  /// A call that may not wait at all is a try: it has as long for its answer as the store gives it.
  [[nodiscard]] Time answer_by(Time now, Time deadline) const noexcept {
    const bool is_try = count_ == 0 && deadline <= now;
    if (is_try || deadline > Time::max() - shortest_trip) return Time::max();
    return std::max(deadline, now + shortest_trip);
  }

  Time sent_{};
  Time answer_by_ = Time::max();
  unsigned count_ = 0;
  std::atomic<unsigned> handed_over_{0};  // so many of them
  unsigned preparations_ = 0;
};

/// The course of a wait: what follows an answer, a wake-up or an instant.
///
///     queued --> asking --> sleeping (refused, and the first in its queue) --> asking ...
///                       --> done
///
/// What some limits must know before they can be asked, such as their configuration, is asked
/// first: preparing. A call with a TurnInLine that is refused also enters the wait line of all
/// processes before it sleeps: entering. A grant that the caller no longer wants is refunded first:
/// refunding. If the store has not answered by the deadline, the wait ends, and what a late answer
/// grants is refunded: overdue.
///
/// Everything runs under the mutex of the waits. What is to be done after that is unlocked is
/// returned, and for Waiter::run(). While a request is at the store, nobody else changes what the
/// thread that has it reads without the mutex: the limits, the home and the turn.
class WaitCourse : public QueuedCall {
 protected:
  friend class TurnInLine;
  friend class WaitQueues;
  friend struct WaitQueue;

  enum class Stage : std::uint8_t {
    idle,
    queued,
    preparing,
    asking,
    entering,
    sleeping,
    refunding,
    overdue,
    done
  };
  /// The next request of the first waiter of a queue.
  enum class Next : std::uint8_t { ask, enter, nothing };

  WaitCourse(ClaimedLimits limits, const Deadline& deadline, Caller caller);
  ~WaitCourse();

  [[nodiscard]] std::shared_ptr<Waiter> shared() noexcept;
  [[nodiscard]] bool is_at_store() const noexcept;
  [[nodiscard]] bool is_about_to_ask() const noexcept;
  // In queues.
  [[nodiscard]] PendingActions join(Time asleep_until, Span hint) noexcept;
  [[nodiscard]] PendingActions join_line();
  void take_ticket();
  void sleep_after_joining(Time asleep_until, Span hint) noexcept;
  [[nodiscard]] std::optional<PendingActions> move_before_asking() noexcept;
  [[nodiscard]] PendingActions move_to(std::size_t next, Time asked, Time asleep_until,
                                       Span hint) noexcept;
  [[nodiscard]] PendingActions leave_home() noexcept;
  [[nodiscard]] PendingActions leave_queues() noexcept;
  // When it asks.
  [[nodiscard]] bool may_ask_too() const noexcept;
  void wake(bool by_release) noexcept;
  [[nodiscard]] Next next_request(std::optional<Step>& step, bool& listen) noexcept;
  [[nodiscard]] Next next_at(Time now) noexcept;
  void pause(Time now) noexcept;
  // What follows.
  [[nodiscard]] PendingActions take_answer(std::error_code error,
                                           const Decision& decision) noexcept;
  [[nodiscard]] PendingActions refuse(const Decision& decision) noexcept;
  [[nodiscard]] PendingActions refuse_in_line(Span hint, Time now) noexcept;
  void sleep(Time now, Span hint) noexcept;
  [[nodiscard]] Span sleep_after(const Place& place, Span hint) const noexcept;
  [[nodiscard]] PendingActions give_up() noexcept;
  [[nodiscard]] PendingActions end(std::error_code error) noexcept;
  [[nodiscard]] PendingActions end_refused(Span wait) noexcept;
  [[nodiscard]] PendingActions begin_refund() noexcept;

  StoreRef store_;
  ClaimedPlan plan_;                  // of the last request, of the thread that makes it
  std::unique_ptr<TurnInLine> turn_;  // at its home; null: processes do not share one queue
  Stage stage_ = Stage::idle;
  bool resumes_ = false;  // pump() is about to send its next request
  bool cancelled_ = false;
  bool is_over_ = false;                     // finished() is called
  Time until_ = Time::max();                 // sleeping: the end of that
  Time earliest_{};                          // sleeping: no grant is possible before this
  RequestAtStore request_;                   // its latest
  std::shared_ptr<Waiter> self_;             // while the store has a pointer to this object
  std::size_t refused_by_ = 0;               // the place whose limit has refused the last request
  std::optional<std::size_t> last_refuser_;  // ... or an earlier one
  Decision refusal_;
};

/// One call that waits for what it claims of one or more limiters: the steps that every way of
/// waiting has in common. The derived class says how a thread or an executor waits for an instant.
/// Any thread may call any public member, and no function is called under the mutex of the waits.
/// finished() is called exactly once.
class Waiter : private WaitCourse, public std::enable_shared_from_this<Waiter> {
 public:
  using Limits = ClaimedLimits;

  /// `limits` are of limits_of(), and have at most Plan::max_steps steps. `arrival` is that of an
  /// earlier try of the same call.
  Waiter(ClaimedLimits limits, const Deadline& deadline, Caller caller,
         const std::optional<Arrival>& arrival = {});
  virtual ~Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Joins the queue. Called once.
  void start() noexcept;
  /// Called when the clock may have reached timer(). In a forked child, where its queue does not
  /// exist, a wait of the parent ends with Errc::forked.
  void on_time() noexcept;
  /// Ends the wait with Errc::cancelled; a grant that is on its way is refunded first.
  void cancel() noexcept;
  /// When on_time() must be called; Time::max(): not at all.
  [[nodiscard]] Time timer() const;
  /// True while a request is at the store. timer() is then when the wait ends without its answer; a
  /// clock that advances while all threads wait must not advance for that.
  [[nodiscard]] bool is_under_way() const;
  /// The exception of a call that finished() with this error.
  [[nodiscard]] std::system_error failed(const CallName& call, const std::error_code& error) const;

 protected:
  /// timer() has changed. Called on any thread, perhaps without need, and perhaps after finished().
  virtual void timer_changed() noexcept = 0;
  /// The wait is over. With an error it has failed; else take() has the answer.
  virtual void finished(std::error_code error) noexcept = 0;

  /// After finished() without an error, once: the grant, or the refusal with the time until a grant
  /// as far as it is known. Grants and Decision are of the whole call, other types of the only
  /// claim.
  template <class Grant>
  [[nodiscard]] Grant take();
  /// The same for one claim, which then has its grant or its refusal.
  [[nodiscard]] std::unique_ptr<ClaimedLimit> take_claim();
  /// Store::reason_of() this error. REQUIRES: called by finished().
  [[nodiscard]] std::shared_ptr<const std::string> reason_for(
      const std::error_code& error) const noexcept;
  /// The refusal that ended the wait; or the decision that came with an error.
  [[nodiscard]] const Decision& refusal() const noexcept { return refusal_; }
  [[nodiscard]] Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] const StoreRef& store() const noexcept { return store_; }
  /// It waits for others in its queue.
  [[nodiscard]] bool is_behind() const;
  /// It is one of several alternatives. Called before start().
  void set_may_leave() noexcept { may_leave_ = true; }
  /// The first of its limits; not after a take() of a grant.
  [[nodiscard]] const ClaimedLimit& first_limit() const noexcept { return *limits_.front(); }
  /// Asks the store what decides whether the call is granted. Called without a mutex.
  virtual void ask_store(const Plan& plan, Completion done) noexcept {
    store_.execute(plan, std::move(done));
  }

 private:
  friend class TurnInLine;
  friend class WaitCourse;
  friend class WaitQueues;
  friend struct WaitQueue;

  void send() noexcept;
  void prepare() noexcept;
  static void prepared(void* self, const Outcome& outcome) noexcept;
  void ask() noexcept;
  static void answered(void* self, const Outcome& outcome) noexcept;
  [[nodiscard]] bool is_outdated(const Outcome& own) noexcept;
  void fail(const std::error_code& error, std::size_t limit) noexcept;
  void conclude(const Outcome& outcome, const Outcome& own) noexcept;
  [[nodiscard]] Decision read(const Outcome& outcome, const Outcome& own);
  static void entered(void* self, const Outcome& outcome) noexcept;
  static void refunded(void* self, const Outcome& outcome) noexcept;
  void run(const PendingActions& actions) noexcept;

  std::mutex& mutex_;  // of all waits on the store
  HomeProcess begun_in_;
  std::optional<Arrival> given_arrival_;
  Decision granted_;
};

template <class Grant>
Grant Waiter::take() {
  if constexpr (std::is_same_v<Grant, Grants>) {
    if (!granted_.allowed) return {refusal_, {}, arrival_};
    return {granted_, std::move(limits_), arrival_};
  } else if constexpr (std::is_same_v<Grant, Decision>) {
    return granted_.allowed ? granted_ : refusal_;
  } else {
    const auto claim = take_claim();
    return std::move(*static_cast<Grant*>(claim->grant(&type_tag<Grant>)));
  }
}

}  // namespace sluice::detail
