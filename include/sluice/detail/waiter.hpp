// One call that waits for a limiter. For those who write ways of waiting: limiters have acquire(),
// and sluice::asio has async_acquire().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "sluice/store.hpp"
#include "sluice/wait_options.hpp"

namespace sluice::detail {

class QueueTicket;
class WaitQueues;
struct WaitQueue;

/// When a call came. It keeps this in whatever queue it waits.
struct Arrival {
  Word at = 0;                 ///< by the clock of the wait
  std::uint64_t sequence = 0;  ///< among all calls of this process
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

/// Whose call it is: what its order in a queue depends on, beside its arrival. See WaitOptions.
struct Caller {
  int priority = 0;
  std::string flow{};
  int weight = 1;

  /// `options`: WaitOptions, or what has the same members.
  template <class Options>
  [[nodiscard]] static Caller of(const Options& options) {
    return {options.priority, std::string(options.flow), options.weight};
  }
  [[nodiscard]] bool is_valid() const noexcept {
    return WaitOptions{priority, flow, weight}.is_valid();
  }
};

/// One call that waits: the steps that every way of waiting has in common. The derived class says
/// how a thread or an executor waits for an instant. Any thread may call any public member.
///
///     queued --> asking --> sleeping (refused, and the first in its queue) --> asking ...
///                       --> done
///
/// A waiter with a QueueTicket that is refused also enters the wait line of all processes before it
/// sleeps: entering. A grant that the caller no longer wants is refunded first: refunding. If the
/// store has not answered by the deadline, the wait ends, and what a late answer grants is
/// refunded: overdue. A call that waits for several limits is in the queue of one of them at a
/// time, with a waiter for each stay. finished(), or moved(), is called exactly once.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  struct Terms {
    std::shared_ptr<WaitQueues> queues;
    std::string key;  ///< which of the queues; see queue_key()
    Clock& clock;
    Time deadline;
    Caller caller{};
    Word units = 1;            ///< that it asks for
    bool freed_early = false;  ///< a grant of others may be released before a refusal's hint
    std::shared_ptr<QueueTicket> ticket{};  ///< null: processes do not share one queue
    std::optional<Arrival> arrival{};       ///< of the same call in another queue
    Time asleep_until{};                    ///< no grant is possible before this
    std::size_t steps = 1;                  ///< of its request
  };

  explicit Waiter(Terms terms);
  virtual ~Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Joins the queue. Called once.
  void start() noexcept;
  /// Called when the clock may have reached timer().
  void on_time() noexcept;
  /// Ends the wait with Errc::cancelled; a grant that is on its way is refunded first.
  void cancel() noexcept;
  /// When on_time() must be called; Time::max(): not at all.
  [[nodiscard]] Time timer() const;
  /// True while a request is at the store. timer() is then when the wait ends without its answer; a
  /// clock that advances while all threads wait must not advance for that.
  [[nodiscard]] bool is_under_way() const;
  /// REQUIRES: start() was called.
  [[nodiscard]] const Arrival& arrival() const noexcept { return arrival_; }

 protected:
  /// Asks the store for a grant at once; if `turn` is not null, in one plan with that step.
  virtual void ask(const Step* turn, Completion done) noexcept = 0;
  /// Keeps the answer and returns its decision. May throw std::bad_alloc.
  virtual Decision read(const Outcome& outcome) = 0;
  /// Refunds the grant that read() kept, if the limiter can.
  virtual void refund(Completion done) noexcept = 0;
  /// timer() has changed. Called on any thread, perhaps without need, and perhaps after finished().
  virtual void timer_changed() noexcept = 0;
  /// The wait is over. With an error it has failed; else it was refused if refusal() was set, which
  /// is then not allowed, and granted otherwise.
  virtual void finished(std::error_code error) noexcept = 0;

  /// After a grant: what it has left of the limit of this queue.
  [[nodiscard]] virtual Decision left() const noexcept = 0;
  /// How long the limit of this queue takes, after a grant that left this, until the request could
  /// be granted. Zero: not known.
  [[nodiscard]] virtual Span refill_time(const Decision& left) const noexcept = 0;
  /// How long the limit of this queue takes at least, after it has granted `first` units as soon as
  /// it could, until it has granted `further` units. Zero: not known, or this request is never
  /// granted.
  [[nodiscard]] virtual Span time_for(Word first, Word further) const noexcept = 0;

  // For calls that wait for several limits.
  /// After a refusal: what was granted to others may be released before the hint.
  [[nodiscard]] virtual bool may_be_freed_early() const noexcept { return terms_.freed_early; }
  /// True if the request that read() has refused waits for another limit than that of this queue.
  /// No grant is possible before `until`. Called under the mutex of this queue.
  [[nodiscard]] virtual bool moves_after_refusal(Time until) noexcept { return (void)until, false; }
  /// True if a call that came earlier sleeps in the queue of another of its limits, which has
  /// refused it. Called before each request, under no mutex.
  [[nodiscard]] virtual bool moves_before_asking() noexcept { return false; }
  /// Joins the queue of the other limit, after it has left this one.
  virtual void moved() noexcept {}

  /// The refusal that ended the wait, with the time until a grant as far as it is known; or the
  /// decision that came with an error.
  [[nodiscard]] const Decision& refusal() const noexcept { return refusal_; }
  [[nodiscard]] Clock& clock() const noexcept { return terms_.clock; }
  /// The ticket of this process for the key; null without WaitQueueOptions::across_processes.
  [[nodiscard]] static std::shared_ptr<QueueTicket> ticket_for(WaitQueues& queues, Store& store,
                                                               const Key& key);

 private:
  friend class WaitQueues;
  friend struct WaitQueue;

  enum class Stage : std::uint8_t {
    idle,
    queued,
    asking,
    entering,
    sleeping,
    refunding,
    overdue,
    done
  };
  /// What remains to be done after the mutex is unlocked.
  struct PendingActions {
    bool timer = false;   ///< call timer_changed()
    bool finish = false;  ///< call finished(error)
    bool move = false;    ///< call moved()
    bool refund = false;
    Word leave = 0;  ///< leave the wait line, where the ticket has this arrival; 0: do not
    Word wake = 0;   ///< wake this process of the wait line; 0: none
    std::error_code error{};
  };
  /// The next request of the first waiter of a queue.
  enum class Next : std::uint8_t { ask, enter, nothing };

  // waiter.cpp
  void send() noexcept;
  static void answered(void* self, const Outcome& outcome) noexcept;
  static void refunded(void* self, const Outcome& outcome) noexcept;
  void run(const PendingActions& actions) noexcept;
  // The members below are called under the mutex of WaitQueues.
  [[nodiscard]] Arrival new_arrival() const noexcept;
  [[nodiscard]] std::shared_ptr<Waiter> insert();
  [[nodiscard]] std::shared_ptr<Waiter> overflow_victim() noexcept;
  [[nodiscard]] PendingActions after_insert() noexcept;
  [[nodiscard]] Next next_request(std::optional<Step>& step, bool& listen) noexcept;
  [[nodiscard]] Span sleep_of_first() const noexcept;
  [[nodiscard]] Span wait_behind(const Waiter& first, Word ahead) const noexcept;
  [[nodiscard]] Word own_units() const noexcept;
  [[nodiscard]] Time pause_end(Time now) const noexcept;
  void pause(Time now) noexcept;
  [[nodiscard]] bool is_about_to_ask() const noexcept;
  [[nodiscard]] bool is_first() const noexcept;
  [[nodiscard]] bool is_next() const noexcept;
  void wake(bool by_release) noexcept;
  [[nodiscard]] bool shares_flow_with(const Waiter& other) const noexcept;
  void note_grant(const Decision& decision) noexcept;
  [[nodiscard]] PendingActions take_answer(std::error_code error,
                                           const Decision& decision) noexcept;
  [[nodiscard]] PendingActions refuse(const Decision& decision) noexcept;
  [[nodiscard]] Time answer_by(Time now) const noexcept;
  [[nodiscard]] bool is_overdue(Time now) const noexcept;
  [[nodiscard]] PendingActions give_up() noexcept;
  [[nodiscard]] Span sleep_after(Span hint) const noexcept;
  [[nodiscard]] Span degraded_sleep(Span hint) const noexcept;
  [[nodiscard]] PendingActions end(std::error_code error, Word wake = 0) noexcept;
  [[nodiscard]] PendingActions end_refused(Span wait) noexcept;
  [[nodiscard]] PendingActions move_away() noexcept;
  void leave_before_asking() noexcept;
  [[nodiscard]] PendingActions begin_refund(Word wake = 0) noexcept;
  [[nodiscard]] Word leave_queue() noexcept;

  // waiter_across_processes.cpp: only with a ticket
  [[nodiscard]] Outcome without_turn(const Outcome& outcome) const noexcept;
  static void entered(void* self, const Outcome& outcome) noexcept;
  [[nodiscard]] Word leave_if_nobody_waits() noexcept;
  [[nodiscard]] bool may_ask_too() const noexcept;
  [[nodiscard]] Next next_with_ticket(Time now, std::optional<Step>& step, bool& listen) noexcept;
  [[nodiscard]] Step turn_step(Time now) noexcept;
  [[nodiscard]] Step enter_step(Time now) noexcept;
  [[nodiscard]] bool holds_ticket_of_another() const noexcept;
  [[nodiscard]] Time renew_ticket_at(Time now) const noexcept;
  [[nodiscard]] bool must_enter() const noexcept;
  [[nodiscard]] Span recheck() const noexcept;
  [[nodiscard]] bool wake_ups_arrive() const noexcept;
  [[nodiscard]] Time quiet_until(Time from) noexcept;
  void sleep_with_ticket(Time now) noexcept;
  [[nodiscard]] Word arrival_of(Word rank) const noexcept;
  [[nodiscard]] Word rank() const noexcept;
  [[nodiscard]] const Waiter* successor() const noexcept;
  [[nodiscard]] Word units_in_line() const noexcept;
  [[nodiscard]] bool turns_are_too_slow(const Decision& left) const noexcept;
  [[nodiscard]] Time own_units_at() const noexcept;
  void expect_enough(const Decision& left, Time own, Word beyond, Time now) const noexcept;
  void note_store_clock(Time at) noexcept;
  void note_turn(const Outcome& outcome) noexcept;
  [[nodiscard]] Word note_entered(const Outcome& outcome) noexcept;
  [[nodiscard]] Word pass_ticket_on() noexcept;
  [[nodiscard]] PendingActions refuse_with_ticket(Span hint, Time now) noexcept;

  Terms terms_;
  WaitQueue* queue_ = nullptr;
  Stage stage_ = Stage::idle;
  bool cancelled_ = false;
  bool is_over_ = false;  // finished() is called
  Arrival arrival_{};
  bool is_in_line_ = false;
  Time until_ = Time::max();              // sleeping: the end of that
  Time earliest_{};                       // sleeping: no grant is possible before this
  Time sent_{};                           // when the request at the store was sent
  Time answer_by_ = Time::max();          // asking or entering: when the wait ends without it
  unsigned requests_ = 0;                 // so many were made
  std::atomic<unsigned> handed_over_{0};  // ... and passed to the store, which has returned
  std::uint64_t releases_ = 0;            // WaitQueue::releases when it was sent

  // With a ticket.
  Word sent_rank_ = 0;           // of the ticket that the request at the store enters
  bool moves_back_ = false;      // the request at the store gives up an earlier place
  bool resumes_ = false;         // pump() is about to send its next request
  Time ask_at_ = Time::min();    // the limiter's hint: no grant is possible before this
  Span ticket_life_{0};          // what the request at the store makes of the ticket's life
  Word next_rank_ = 0;           // of the ticket after a grant
  Word next_arrival_ = 0;        // ... and its arrival; 0: there is none
  bool asks_unwoken_ = false;    // the request was sent behind another process without a wake-up
  bool asks_woken_ = false;      // ... after a wake-up
  bool asks_early_ = false;      // ... since the limiter has enough for all ahead
  bool limiter_grants_ = false;  // the limiter alone would have granted the last request
  Span ahead_expire_in_{0};      // when the tickets of all processes ahead have expired
  Decision refusal_;
  std::shared_ptr<Waiter> self_;  // while the store has a pointer to this object
};

}  // namespace sluice::detail
