// One call that waits. For those who write ways of waiting: limiters have acquire(), and
// sluice::asio has async_acquire().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/calls/grants.hpp"
#include "sluice/detail/caller.hpp"
#include "sluice/detail/claimed_limit.hpp"
#include "sluice/detail/store_ref.hpp"

namespace sluice::detail {

class QueueTicket;
class WaitQueues;
struct WaitQueue;
enum class Woken : bool;

/// One call that waits for what it claims of one or more limiters: the steps that every way of
/// waiting has in common. The derived class says how a thread or an executor waits for an instant.
/// Any thread may call any public member.
///
///     queued --> asking --> sleeping (refused, and the first in its queue) --> asking ...
///                       --> done
///
/// It waits in the queue of one limiter at a time, its home: of the first claim, then of the
/// limiter that has refused it. There it keeps its place among all callers, and wherever it has
/// waited in vain, it is before all that come later; see WaitQueue.
///
/// What some limits must know before they can be asked, such as their configuration, is asked
/// first: preparing. A waiter with a QueueTicket that is refused also enters the wait line of all
/// processes before it sleeps: entering. A grant that the caller no longer wants is refunded first:
/// refunding. If the store has not answered by the deadline, the wait ends, and what a late answer
/// grants is refunded: overdue. finished() is called exactly once.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  /// `limits` are of limits_of(), and have at most Plan::max_steps steps. `arrival` is that of an
  /// earlier try of the same call.
  Waiter(ClaimedLimits limits, const Deadline& deadline, Caller caller,
         const std::optional<Arrival>& arrival = {});
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

 private:
  friend class WaitQueues;
  friend struct WaitQueue;

  /// From queue to queue, before it asks.
  static constexpr std::size_t most_moves = 32;

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
  /// What is claimed of one limiter.
  struct Place {
    std::shared_ptr<WaitQueues> queues;
    std::string key;  ///< which of the queues
    Word units = 1;
    bool freed_early = false;
    WaitQueue* queue = nullptr;  ///< while the call waits
    bool is_in_line = false;     ///< its home, or one that it keeps for its return
    Span waited{0};              ///< there, until it was refused elsewhere
    Time keeps_until{};          ///< its turn there, while it waits elsewhere
    std::uint64_t wakes = 0;     ///< of the queue, when the call asked
    std::uint64_t releases = 0;  ///< ... or was woken
    Time refused_until{};        ///< by the last refusal, unless it is woken
  };
  /// A step of the plan at the store: the limit that it is of, and whether it decides.
  struct Part {
    std::size_t limit;
    std::size_t words;  ///< of output
    bool decides;
  };
  struct Steps;
  /// What remains to be done after the mutex is unlocked.
  struct PendingActions {
    bool timer = false;   ///< call timer_changed()
    bool finish = false;  ///< call finished(error)
    bool refund = false;  ///< what was granted
    Word leave = 0;       ///< leave the wait line, where `ticket` has this arrival
    Word wake = 0;        ///< wake this process of the wait line
    Woken wake_by{};      ///< by its turn, unless something came back
    std::shared_ptr<QueueTicket> ticket{};  ///< for these two, or one that is no longer needed
    std::shared_ptr<Waiter> dropped{};      ///< from a full queue
    Word dropped_leaves = 0;
    std::shared_ptr<Waiter> overtaken{};  ///< it is no longer the first
    std::error_code error{};
  };
  /// A process of the wait line that is woken next; 0: none.
  struct NextProcess {
    Word client;
    Woken by;
  };
  /// The next request of the first waiter of a queue.
  enum class Next : std::uint8_t { ask, enter, nothing };

  // waiter.cpp, waiter_places.cpp, waiter_requests.cpp
  void send() noexcept;
  void prepare() noexcept;
  static void prepared(void* self, const Outcome& outcome) noexcept;
  void ask() noexcept;
  static void answered(void* self, const Outcome& outcome) noexcept;
  void conclude(const Outcome& outcome, const Outcome& own) noexcept;
  void fail(const std::error_code& error, std::size_t limit) noexcept;
  static void refunded(void* self, const Outcome& outcome) noexcept;
  void run(const PendingActions& actions) noexcept;
  [[nodiscard]] std::size_t limit_of(std::size_t step) const noexcept;
  template <class Hear>
  void for_each_limit(const Outcome& outcome, const Hear& hear) const;
  [[nodiscard]] Outcome by_limits(const Outcome& outcome, std::span<Decision> each) const noexcept;
  [[nodiscard]] bool is_outdated(const Outcome& own) noexcept;
  [[nodiscard]] Decision read(const Outcome& outcome, const Outcome& own);
  [[nodiscard]] const Decision& decisive(const Outcome& outcome) const noexcept;
  // The members below are called under mutex_.
  [[nodiscard]] Place& home() noexcept { return places_[home_]; }
  [[nodiscard]] const Place& home() const noexcept { return places_[home_]; }
  [[nodiscard]] Arrival new_arrival() const noexcept;
  void take_places();
  [[nodiscard]] PendingActions join(Time asleep_until, Span hint) noexcept;
  [[nodiscard]] PendingActions join_line();
  void take_ticket();
  void sleep_after_joining(Time asleep_until, Span hint) noexcept;
  [[nodiscard]] std::shared_ptr<Waiter> overflow_victim() noexcept;
  [[nodiscard]] Next next_request(std::optional<Step>& step, bool& listen) noexcept;
  void begin_another() noexcept;
  [[nodiscard]] Span sleep_of_first() const noexcept;
  [[nodiscard]] Span wait_behind(const Waiter& first, Word ahead) const noexcept;
  [[nodiscard]] Word own_units() const noexcept;
  [[nodiscard]] Span refill_time(const Decision& left) const noexcept;
  [[nodiscard]] Span time_for(Word first, Word further) const noexcept;
  [[nodiscard]] Time units_at(std::size_t index, Time now) const noexcept;
  [[nodiscard]] Time pause_end(Time now) const noexcept;
  [[nodiscard]] std::optional<std::size_t> slower_limit(Time now) const noexcept;
  void pause(Time now) noexcept;
  [[nodiscard]] bool is_about_to_ask() const noexcept;
  [[nodiscard]] bool is_first() const noexcept;
  [[nodiscard]] bool is_next() const noexcept;
  [[nodiscard]] bool is_at_its_turn() const noexcept;
  [[nodiscard]] Time next_lapse() const noexcept;
  [[nodiscard]] bool was_woken() const noexcept;
  [[nodiscard]] bool is_home_released() const noexcept;
  void note_wakes() noexcept;
  void wake(bool by_release) noexcept;
  [[nodiscard]] bool shares_flow_with(const Waiter& other) const noexcept;
  void note_grant(const Decision& decision) noexcept;
  [[nodiscard]] PendingActions take_answer(std::error_code error,
                                           const Decision& decision) noexcept;
  [[nodiscard]] PendingActions refuse(const Decision& decision) noexcept;
  [[nodiscard]] bool has_failed(Span hint, Time now) const noexcept;
  void note_refusal(Time now, Span hint) noexcept;
  [[nodiscard]] bool is_at_store() const noexcept;
  [[nodiscard]] Time answer_by(Time now) const noexcept;
  [[nodiscard]] bool is_overdue(Time now) const noexcept;
  [[nodiscard]] PendingActions give_up() noexcept;
  [[nodiscard]] Span sleep_after(Span hint) const noexcept;
  [[nodiscard]] Span degraded_sleep(Span hint) const noexcept;
  [[nodiscard]] PendingActions end(std::error_code error, NextProcess wake = {}) noexcept;
  [[nodiscard]] PendingActions end_refused(Span wait) noexcept;
  [[nodiscard]] PendingActions begin_refund(NextProcess wake = {}) noexcept;
  [[nodiscard]] PendingActions leave_queues() noexcept;
  [[nodiscard]] PendingActions leave_home() noexcept;
  // Between queues.
  [[nodiscard]] std::size_t place_at(std::size_t limit) const noexcept;
  [[nodiscard]] std::optional<std::size_t> place_in(const WaitQueue& queue) const noexcept;
  [[nodiscard]] std::optional<std::size_t> sleeper_ahead() noexcept;
  [[nodiscard]] std::optional<PendingActions> move_before_asking() noexcept;
  [[nodiscard]] bool keeps_turn(std::size_t index, std::size_t next, Span hint) const noexcept;
  [[nodiscard]] PendingActions move_to(std::size_t place, Time asked, Time asleep_until,
                                       Span hint) noexcept;

  // waiter_across_processes.cpp: only with a ticket
  static void entered(void* self, const Outcome& outcome) noexcept;
  [[nodiscard]] Word leave_if_nobody_waits() noexcept;
  [[nodiscard]] bool may_ask_too() const noexcept;
  [[nodiscard]] bool is_due(Time now) const noexcept;
  [[nodiscard]] Next next_with_ticket(Time now, std::optional<Step>& step, bool& listen) noexcept;
  [[nodiscard]] Step turn_step(Time now) noexcept;
  [[nodiscard]] Step enter_step(Time now) noexcept;
  [[nodiscard]] bool holds_ticket_of_another() const noexcept;
  [[nodiscard]] Time renew_ticket_at(Time now) const noexcept;
  [[nodiscard]] bool must_enter() const noexcept;
  [[nodiscard]] Span recheck() const noexcept;
  [[nodiscard]] Time recheck_at() const noexcept;
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
  void note_turn(const Outcome& outcome, const Outcome& own) noexcept;
  [[nodiscard]] Word note_entered(const Outcome& outcome) noexcept;
  [[nodiscard]] NextProcess pass_ticket_on() noexcept;
  [[nodiscard]] PendingActions refuse_with_ticket(Span hint, Time now) noexcept;

  ClaimedLimits limits_;
  StoreRef store_;
  Clock& clock_;
  bool is_shared_;  // the store: other processes may give back what this one waits for
  Time deadline_;
  Caller caller_;
  std::mutex& mutex_;          // of all waits on the store; it guards what follows
  std::vector<Place> places_;  // of limits_
  std::size_t plan_size_ = 0;  // of their steps and conditions
  std::size_t home_ = 0;
  std::size_t moves_ = 0;                // since it asked or slept
  bool is_at_home_ = false;              // it is in that queue
  Time joined_{};                        // when it came to it
  std::shared_ptr<QueueTicket> ticket_;  // of its home; null: processes do not share one queue
  Stage stage_ = Stage::idle;
  bool cancelled_ = false;
  bool is_over_ = false;  // finished() is called
  std::optional<Arrival> given_arrival_;
  Arrival arrival_{};
  Time until_ = Time::max();              // sleeping: the end of that
  Time earliest_{};                       // sleeping: no grant is possible before this
  Time sent_{};                           // when the request at the store was sent
  Time answer_by_ = Time::max();          // asking or entering: when the wait ends without it
  unsigned requests_ = 0;                 // so many were made
  std::atomic<unsigned> handed_over_{0};  // ... and passed to the store, which has returned
  std::vector<Part> asked_;               // the plan of the last one
  unsigned preparations_ = 0;             // so often it was asked anew
  std::size_t refused_by_ = 0;            // the place whose limit has refused the last request
  Decision granted_;
  Decision refusal_;

  // With a ticket.
  Word sent_rank_ = 0;            // of the ticket that the request at the store enters
  bool moves_back_ = false;       // the request at the store gives up an earlier place
  bool resumes_ = false;          // pump() is about to send its next request
  Time ask_at_ = Time::min();     // the limiter's hint: no grant is possible before this
  Span ticket_life_{0};           // what the request at the store makes of the ticket's life
  Word next_rank_ = 0;            // of the ticket after a grant
  Word next_arrival_ = 0;         // ... and its arrival; 0: there is none
  bool asks_unwoken_ = false;     // the request was sent behind another process without a wake-up
  bool asks_woken_ = false;       // ... after a wake-up
  bool asks_early_ = false;       // ... since the limiter has enough for all ahead
  bool limiter_grants_ = false;   // the limiter alone would have granted the last request
  Span ahead_expire_in_{0};       // when the tickets of all processes ahead have expired
  std::shared_ptr<Waiter> self_;  // while the store has a pointer to this object
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
