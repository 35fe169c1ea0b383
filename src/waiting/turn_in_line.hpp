// The turn of a call among the callers of all processes.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "src/waiting/queue_ticket.hpp"

namespace sluice::detail {

class WaitCourse;
struct WaitQueue;

/// How one waiter takes its turn in the wait line of all processes, with the ticket of its process:
/// when it asks, and what it learns of the others from the answers. Only the first waiter of a
/// queue, and those that ask beside it, use theirs. Everything runs under the mutex of the waits,
/// and reads the state of its waiter.
class TurnInLine {
 public:
  TurnInLine(WaitCourse& call, std::shared_ptr<QueueTicket> ticket) noexcept
      : call_(call), ticket_(std::move(ticket)), others_(ticket_->others()) {}

  [[nodiscard]] const std::shared_ptr<QueueTicket>& ticket() const noexcept { return ticket_; }

  /// The limiter's hint: no grant is possible before this. No wake-up came since it was given.
  void wait_for_hint(Time at) noexcept {
    ask_at_ = at;
    others_.forget_wake_up();
  }
  void forget_hint() noexcept { ask_at_ = Time::min(); }
  /// Since it asked.
  [[nodiscard]] bool was_woken() const noexcept { return others_.have_woken(); }
  void wait_for(Time units) noexcept { ask_at_ = std::max(ask_at_, units); }
  /// The limiter may have units for the waiter.
  [[nodiscard]] bool is_due(Time now) const noexcept;
  /// Whether it may ask while others of this process do.
  [[nodiscard]] bool may_ask_too(Time now) const noexcept;
  /// It asks whether it is its turn, beside the limiter.
  [[nodiscard]] bool may_ask(Time now) const noexcept;
  [[nodiscard]] Step turn_step(Time now) noexcept;
  /// The ticket has the place of a waiter that has left.
  [[nodiscard]] bool is_misplaced() const noexcept { return ticket_->is_misplaced(rank()); }
  /// Or it enters the line, or renews its ticket: when it must.
  [[nodiscard]] Time renew_at(Time now) const noexcept;
  [[nodiscard]] Step enter_step(Time now) noexcept;
  /// When the next of both is.
  [[nodiscard]] Time sleeps_until(Time now) const noexcept;

  /// Keeps what the answer to a turn step says; `own` is that of the limiter.
  void hear_turn(const Outcome& outcome, const Outcome& own) noexcept;
  /// The limiter alone would have granted that request.
  [[nodiscard]] bool limiter_grants() const noexcept { return limiter_grants_; }
  /// When the tickets of all processes ahead have expired.
  [[nodiscard]] Span ahead_expire_in() const noexcept { return ahead_expire_in_; }
  /// The ticket is the next waiter's. Returns the process to wake.
  [[nodiscard]] NextProcess pass_on() noexcept;
  /// After a refusal it asks again when the limiter may have units, at `ask`. Returns the process
  /// to wake.
  [[nodiscard]] NextProcess refused(Time ask, Time now) noexcept;
  /// ... at once, since something came back, or the turn did, perhaps after the refusal.
  void woken(Time now) noexcept;
  /// Keeps what the answer to an enter step says. Returns the process to wake.
  [[nodiscard]] NextProcess entered(const Outcome& outcome) noexcept;
  /// The arrival in the store of a ticket that entered late, if nobody waits here: those who do
  /// enter it again by themselves. Otherwise 0.
  [[nodiscard]] Word leave_if_nobody_waits() const noexcept;

 private:
  using Asks = OtherProcesses::Asks;

  [[nodiscard]] WaitQueue& queue() const noexcept;
  [[nodiscard]] Span recheck() const noexcept;
  [[nodiscard]] Span longest_poll() const noexcept;
  [[nodiscard]] Word rank() const noexcept;
  [[nodiscard]] Word arrival_of(Word rank) const noexcept;
  [[nodiscard]] Word units() const noexcept;
  [[nodiscard]] TurnInLine* successor() const noexcept;
  [[nodiscard]] Time own_units_at() const noexcept;
  void expect_enough(const Decision& left, Time own, Word beyond, Time now) noexcept;
  void note_store_clock(Time at) noexcept;

  WaitCourse& call_;
  std::shared_ptr<QueueTicket> ticket_;
  OtherProcesses& others_;
  Time ask_at_ = Time::min();
  // Of the request at the store:
  Word sent_rank_ = 0;       // that it enters
  Word sent_arrival_ = 0;    // ... by the store's clock
  bool moves_back_ = false;  // it gives up an earlier place
  Span life_{0};             // what it makes of the ticket's
  Word next_rank_ = 0;       // of the ticket after a grant
  QueueTicket::Caller next_{0};
  Asks asks_ = Asks::first;
  // Of its answer:
  bool limiter_grants_ = false;
  Span ahead_expire_in_{0};
};

}  // namespace sluice::detail
