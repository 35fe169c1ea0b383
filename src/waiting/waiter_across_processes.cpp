// The steps of a wait in one queue over all processes: what the first waiter of this process asks
// and when, and what it learns of the others. All but entered() run under the mutex of WaitQueues.
#include <algorithm>
#include <utility>

#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// While other processes are ahead and no wake-up has come, the waiter asks after this pause, then
// doubles it up to WaitQueueOptions::recheck. Where wake-ups arrive, it pauses for that at once.
constexpr Span shortest_poll = std::chrono::milliseconds{1};

// A process whose callers have a higher priority is before one whose callers came up to 12 days
// earlier: no wait lasts so long. Arrivals by today's epoch remain below 2^52 for 80 years.
constexpr Word class_span = Word{1} << 40;

std::span<const Word> turn_output(const Outcome& outcome) noexcept {
  return outcome.output.last(WaitLineRule::output);
}

}  // namespace

/// Whether it may ask while others of this process do: if no other process waits, or the limiter
/// has enough for those ahead and these. Otherwise each grant of one would refuse the others.
bool Waiter::may_ask_too() const noexcept {
  const QueueTicket* const ticket = ticket_.get();
  const Time now = clock_.now();
  if (ticket == nullptr) return now >= pause_end(now);
  if (ticket->first_other == 0) return now >= ticket->quiet_until;
  const Word others = ticket->enough - ticket->granted - ticket->units_ahead;
  return now >= ticket->enough_at &&
         others >= static_cast<Word>(home().queue->in_flight) * units_in_line();
}

/// The limiter may have units for it.
bool Waiter::is_due(Time now) const noexcept {
  return now >= std::min(ask_at_, recheck_at()) || (ticket_->is_woken && home().freed_early);
}

/// `step` is that of Next::enter.
Waiter::Next Waiter::next_with_ticket(Time now, std::optional<Step>& step, bool& listen) noexcept {
  QueueTicket& ticket = *ticket_;
  const Time paused = pause_end(now);
  earliest_ = std::max(earliest_, paused);
  ask_at_ = std::max(ask_at_, paused);
  const bool may_ask = ticket.is_woken || now >= std::min(ticket.quiet_until, ticket.enough_at);
  if (now >= deadline_ || (is_due(now) && may_ask && !must_enter())) return Next::ask;
  if (renew_ticket_at(now) > now) return Next::nothing;
  listen = !std::exchange(ticket.listen_called, true);
  step = enter_step(now);
  return Next::enter;
}

Step Waiter::turn_step(Time now) noexcept {
  QueueTicket& ticket = *ticket_;
  const bool is_enough = ticket.is_behind() && now >= ticket.enough_at;
  asks_early_ = is_enough && !ticket.is_woken && now < ticket.quiet_until;
  asks_unwoken_ = (ticket.is_behind() || ticket.found_first) && !ticket.is_woken && !asks_early_;
  ticket.found_first = false;
  asks_woken_ = ticket.is_behind() && ticket.is_woken;
  ticket.is_woken = false;
  const Waiter* const next = successor();
  next_rank_ = next != nullptr ? next->rank() : 0;
  next_arrival_ = next != nullptr ? arrival_of(next_rank_) : 0;
  ticket_life_ = ticket.ttl();
  return ticket.turn_step({arrival_of(rank()), units_in_line()},
                          {next_arrival_, next != nullptr ? next->units_in_line() : 1},
                          is_enough ? ticket.enough : 0);
}

/// One that takes none has a place as well.
Word Waiter::units_in_line() const noexcept { return std::max<Word>(home().units, 1); }

/// A turn passes on by an answer, a wake-up and a request. True if the limit, which has left this,
/// would not grant all it can in that way.
bool Waiter::turns_are_too_slow(const Decision& left) const noexcept {
  const Span turn = 2 * ticket_->round_trip;
  const Span unit = time_for(home().units, 1);
  if (unit > Span{0}) return turn > unit;
  return left.remaining > 0 && turn > left.reset_after / left.remaining;
}

/// After a grant to another of this process: when the limiter has units for this waiter.
/// Time::max(): not known.
Time Waiter::own_units_at() const noexcept {
  if (home().queue->left.remaining >= home().units) return home().queue->last_grant;
  const Span refill = refill_time(home().queue->left);
  return refill == Span{0} ? Time::max() : home().queue->last_grant + refill;
}

/// Where turns are too slow, the waiter asks without its turn once the limiter has units for it and
/// all ahead; at `own` it has them for the waiter, and `beyond` for others. After each refusal of
/// such a request the next one waits twice as long: older callers of another process may come
/// between.
void Waiter::expect_enough(const Decision& left, Time own, Word beyond, Time now) const noexcept {
  QueueTicket& ticket = *ticket_;
  ticket.enough = std::min(ticket.granted + std::max(ticket.units_ahead, beyond), word_limit);
  ticket.enough_at = Time::max();
  if (limits_.size() > 1 || own == Time::max() || !turns_are_too_slow(left)) return;
  const Word missing = ticket.units_ahead - beyond;
  const Span further = missing > 0 ? time_for(home().units, missing) : Span{0};
  if (missing > 0 && further == Span{0}) return;  // not known
  const Span wait = std::max(Span{0}, own + further - now);
  const Span once = std::max(std::min(wait, recheck()), shortest_poll);
  const Span pause = std::min(once * (1 << std::min(ticket.in_vain, 16U)), recheck());
  ticket.enough_at = now + (ticket.in_vain == 0 ? wait : std::max(wait, pause));
}

Step Waiter::enter_step(Time now) noexcept {
  QueueTicket& ticket = *ticket_;
  stage_ = Stage::entering;
  home().queue->in_flight_limit = 1;  // nobody asks meanwhile
  // No process can be granted before the limiter's hint, so a ticket delays nobody until then.
  const Span hint = home().freed_early ? Span{0} : std::max(now, ask_at_) - now;
  ticket_life_ = ticket.ttl() + std::min(hint, QueueTicket::longest_hint);
  sent_rank_ = rank();
  moves_back_ = ticket.is_entered && ticket.rank < sent_rank_;
  ticket.stored_arrival = arrival_of(sent_rank_);
  return ticket.enter_step({ticket.stored_arrival, units_in_line()}, ticket_life_);
}

/// The ticket in the store still has the arrival of a waiter that has gone, which is ahead of other
/// processes. Two processes in that state would refuse each other for ever.
bool Waiter::holds_ticket_of_another() const noexcept {
  const QueueTicket& ticket = *ticket_;
  return ticket.first_other != 0 && ticket.is_entered && ticket.rank != rank();
}

/// It joins the others before it asks.
bool Waiter::must_enter() const noexcept {
  const QueueTicket& ticket = *ticket_;
  return home().queue->in_flight == 1 &&
         (holds_ticket_of_another() || (ticket.was_contended && !ticket.is_entered));
}

/// When the ticket must be entered or renewed.
Time Waiter::renew_ticket_at(Time now) const noexcept {
  const QueueTicket& ticket = *ticket_;
  if (!ticket.is_entered || ticket.rank != rank()) return Time::min();
  const Span half = ticket.ttl() / 2;
  const Time ask = home().freed_early ? now : std::max(now, ask_at_);
  if (ticket.alive_until < ask + half && ask > now) {  // it would expire before the hint
    return ticket.alive_until - QueueTicket::longest_hint / 2 - half;
  }
  const Time expires = std::max(ask, ticket.alive_until - half);
  if (!ticket.is_behind() || !wake_ups_arrive()) return expires;
  return std::min(expires, std::max(ask, ticket.renewed_at + recheck()));
}

Span Waiter::recheck() const noexcept { return home().queues->options_.recheck; }

/// When the first waiter asks again before the limiter's hint: another process may have given
/// something back.
Time Waiter::recheck_at() const noexcept {
  return is_shared_ ? home().queue->last_answer + recheck() : Time::max();
}

bool Waiter::wake_ups_arrive() const noexcept {
  return ticket_->receives_wake_ups && !ticket_->loses_wake_ups;
}

/// Until when a process that is behind others asks for no turn. Where wake-ups arrive, it is woken,
/// and the answers to its renewals tell when it is the first.
Time Waiter::quiet_until(Time from) noexcept {
  QueueTicket& ticket = *ticket_;
  if (wake_ups_arrive()) return Time::max();
  if (ticket.poll == Span{0}) ticket.poll = std::min(shortest_poll, recheck());
  return from + ticket.poll;
}

void Waiter::sleep_with_ticket(Time now) noexcept {
  const QueueTicket& ticket = *ticket_;
  home().queue->put_back(*this);
  stage_ = Stage::sleeping;
  const Time turn = std::min(ticket.quiet_until, ticket.enough_at);
  const Time ask = ticket.is_woken ? ask_at_ : std::max(ask_at_, turn);
  until_ = std::min({ask, renew_ticket_at(now), deadline_});
  if (!ticket.is_behind() || ticket.is_woken) until_ = std::min(until_, recheck_at());
}

/// What orders processes, by the clock of the wait: the highest priority that waits here, or is
/// this waiter's, and since when that waits.
Word Waiter::rank() const noexcept {
  const Line::Place own = WaitQueue::place_of(*this);
  const Line::Place place =
      std::max(own, home().queue->line.oldest().value_or(own), &Line::is_behind);
  const Waiter& oldest = place == own ? *this : *home().queue->waiters.find(place.number)->second;
  return oldest.arrival_.at - place.priority * class_span;
}

/// A rank by the store's clock; behind all others if that clock is not known.
Word Waiter::arrival_of(Word rank) const noexcept {
  const auto lead = home().queues->store_clock_lead_;
  return lead ? std::clamp(rank + lead->count(), Word{1}, word_limit) : word_limit;
}

/// The next waiter of this process that can take the ticket while this one asks, or null.
const Waiter* Waiter::successor() const noexcept {
  const Waiter* const first = home().queues->store_clock_lead_ ? home().queue->first() : nullptr;
  return first != nullptr && first->ticket_ == ticket_ ? first : nullptr;
}

/// The store answered between sent_ and now, which bounds the difference of the two clocks. The
/// estimate changes only as far as the bounds require.
void Waiter::note_store_clock(Time at) noexcept {
  auto& lead = home().queues->store_clock_lead_;
  const Span least = at - clock_.now();
  const Span most = at - sent_;
  lead = least <= most ? std::clamp(lead.value_or(Span{0}), least, most) : most;
}

/// Keeps what the answer to a turn step says of the wait line.
void Waiter::note_turn(const Outcome& outcome, const Outcome& own) noexcept {
  QueueTicket& ticket = *ticket_;
  const Decision& turn = outcome.steps.back();
  ticket.round_trip = clock_.now() - sent_;
  if (!is_degraded(outcome.decision.source)) note_store_clock(turn.at);
  ticket.first_other = turn_output(outcome)[1];
  limiter_grants_ =
      std::all_of(own.steps.begin(), own.steps.end(), [](const Decision& d) { return d.allowed; });
  ahead_expire_in_ = turn.allowed ? Span{0} : turn.retry_after;
  if (outcome.decision.allowed || !turn.allowed) {
    ticket.units_ahead = turn_output(outcome)[0];
    ticket.granted = turn_output(outcome)[2];
  } else if (!asks_early_) {  // the answer is of the next waiter's place
    ticket.units_ahead = 0;
  }
  if (!ticket.is_behind()) ticket.quiet_until = Time::min();
}

/// After a grant the ticket is the next waiter's. Returns the process to wake.
Waiter::NextProcess Waiter::pass_ticket_on() noexcept {
  QueueTicket& ticket = *ticket_;
  const Time now = clock_.now();
  ticket.is_entered = next_arrival_ != 0;
  ticket.rank = next_rank_;
  ticket.stored_arrival = next_arrival_;
  ticket.alive_until = sent_ + ticket_life_;
  ticket.renewed_at = sent_;
  if (asks_unwoken_) ticket.loses_wake_ups = true;
  if (asks_woken_) ticket.loses_wake_ups = false;
  ticket.poll = Span{0};
  ticket.quiet_until = Time::min();
  if (ticket.is_behind()) ticket.quiet_until = quiet_until(now);
  ticket.in_vain = 0;
  if (const Waiter* const next = successor()) {
    const Word beyond = std::max<Word>(0, home().queue->left.remaining - next->home().units);
    next->expect_enough(home().queue->left, next->own_units_at(), beyond, now);
  }
  ticket.was_contended = false;
  if (next_arrival_ == 0 && ticket.first_other != 0) home().queues->note_contended(home().key, now);
  if (home().queue->left.remaining == 0) ticket.is_released = false;
  if (!ticket.is_behind()) return {};
  // What has come back may be enough for that process as well.
  const bool released = std::exchange(ticket.is_released, false);
  return {ticket.first_other, released ? Woken::by_release : Woken::by_turn};
}

/// After a refusal: asks again later, or ends.
Waiter::PendingActions Waiter::refuse_with_ticket(Span hint, Time now) noexcept {
  QueueTicket& ticket = *ticket_;
  if (limiter_grants_) hint = Span{0};
  if (has_failed(hint, now)) return end_refused(std::max(hint, ahead_expire_in_));
  if (!limiter_grants_) note_refusal(now, hint);
  if (!limiter_grants_ && refused_by_ != home_) {
    return move_to(refused_by_, sent_, now + degraded_sleep(hint), hint);
  }
  stage_ = Stage::queued;
  if (!is_first()) return {.timer = true};
  resumes_ = true;
  earliest_ = now + hint;
  ask_at_ = now + sleep_after(hint);
  ticket.quiet_until = Time::min();
  if (was_woken() || ticket.is_woken) {  // perhaps after the store's refusal
    ask_at_ = earliest_ = now;
    ticket.is_woken = true;
    return {.timer = true};
  }
  const bool released = std::exchange(ticket.is_released, false) && limiter_grants_;
  if (!ticket.is_behind()) return {};
  if (asks_early_) ++ticket.in_vain;
  expect_enough(refusal_, limiter_grants_ ? now : ask_at_, limiter_grants_ ? refusal_.remaining : 0,
                now);
  ticket.quiet_until = std::max(ask_at_, std::min(quiet_until(ask_at_), now + ahead_expire_in_));
  if (!limiter_grants_) return {};
  ticket.poll = std::min(2 * ticket.poll, recheck());
  // The first process could be granted, and does not seem to know. A process that was woken itself
  // wakes nobody: two could wake each other for ever.
  return {.wake = asks_woken_ || asks_early_ ? 0 : ticket.first_other,
          .wake_by = released ? Woken::by_release : Woken::by_turn,
          .ticket = ticket_};
}

/// Keeps what the answer to an enter step says. Returns the process to wake, or 0.
Word Waiter::note_entered(const Outcome& outcome) noexcept {
  QueueTicket& ticket = *ticket_;
  ticket.is_entered =
      true;  // after an error too: it is sent again when the ticket is to be renewed
  ticket.rank = sent_rank_;
  ticket.alive_until = sent_ + ticket_life_;
  ticket.renewed_at = sent_;
  ticket.receives_wake_ups = ticket.is_listening();
  if (outcome
          .error) {  // nobody wakes it while the store is away, and its limiter may have a policy
    ticket.quiet_until = Time::min();
    return 0;
  }
  const bool was_behind = ticket.is_behind();
  const auto output = turn_output(outcome);
  ticket.round_trip = clock_.now() - sent_;
  if (!is_degraded(outcome.decision.source)) note_store_clock(outcome.decision.at);
  ticket.first_other = output[1];
  ticket.units_ahead = output[0];
  ticket.granted = output[2];
  if (!ticket.is_behind()) {
    ticket.found_first = was_behind && wake_ups_arrive() && !ticket.is_woken;
    ticket.quiet_until = Time::min();
    return 0;
  }
  if (!was_behind || wake_ups_arrive()) {
    ticket.quiet_until = std::max(ticket.quiet_until, quiet_until(ask_at_));
  }
  if (!was_behind) {
    const Time now = clock_.now();
    expect_enough(refusal_, ask_at_ < now ? Time::max() : ask_at_, 0, now);
  }
  return moves_back_ ? ticket.first_other : 0;
}

/// Of a ticket that stands in the wait line late: those who wait here enter it again by themselves.
Word Waiter::leave_if_nobody_waits() noexcept {
  const auto found = home().queues->queues_.find(home().key);
  const bool anybody = found != home().queues->queues_.end() && found->second.homes > 0;
  return anybody ? 0 : ticket_->stored_arrival;
}

void Waiter::entered(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  PendingActions actions;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(waiter.mutex_);
    alive = std::move(waiter.self_);
    waiter.answer_by_ = Time::max();
    const bool is_overdue = waiter.stage_ == Stage::overdue;
    if (!is_overdue) waiter.home().queue->put_back(waiter);
    const Word wake = is_overdue ? 0 : waiter.note_entered(outcome);
    if (is_overdue) {
      actions.ticket = waiter.ticket_;
      if (!outcome.error) actions.leave = waiter.leave_if_nobody_waits();
    } else if (waiter.cancelled_) {
      actions = waiter.end(Errc::cancelled, {wake, Woken::by_turn});
    } else {
      waiter.stage_ = Stage::queued;
      waiter.resumes_ = true;
      actions = {
          .timer = true, .wake = wake, .ticket = waiter.ticket_};  // it may no longer be the first
    }
  }
  waiter.run(actions);
}

}  // namespace sluice::detail
