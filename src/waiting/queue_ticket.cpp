#include "src/waiting/queue_ticket.hpp"

#include <algorithm>

#include "sluice/decide.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// While other processes are ahead and no wake-up has come, the waiter asks after this pause, then
// doubles it up to TurnInLine::longest_poll(). Where wake-ups arrive, it waits for one.
constexpr Span shortest_poll = std::chrono::milliseconds{1};

}  // namespace

void OtherProcesses::hear(std::span<const Word, WaitLineRule::output> told, Span round_trip,
                          bool counts, Time now) noexcept {
  round_trip_ = round_trip;
  first_ = told[1];
  if (!counts) return;
  units_ahead_ = told[0];
  granted_ = told[2];
  gone_at_ = now + Span{told[3]};
}

void OtherProcesses::woke(Woken by) noexcept {
  is_woken_ = true;
  if (by == Woken::by_release) is_released_ = true;
}

OtherProcesses::Asks OtherProcesses::ask(Time now) noexcept {
  const bool was_woken = std::exchange(is_woken_, false);
  const bool had_found = std::exchange(found_first_, false);
  if (was_woken) return are_ahead() ? Asks::woken : Asks::first;
  if (are_ahead() && now >= enough_at_ && now < quiet_until_) return Asks::early;
  return are_ahead() || had_found ? Asks::unwoken : Asks::first;
}

/// If no other process waits, or the limiter has enough for those ahead and these. Otherwise each
/// grant of one would refuse the others.
bool OtherProcesses::may_ask_beside(Time now, Word units) const noexcept {
  if (first_ == 0) return now >= quiet_until_;
  return now >= enough_at_ && enough_ - granted_ - units_ahead_ >= units;
}

/// Until when a process that is behind others asks for no turn. Where wake-ups arrive, it is woken,
/// and the answers to its renewals tell when it is the first.
Time OtherProcesses::quiet_until(Time from, Span recheck) noexcept {
  if (wake_ups_arrive()) return Time::max();
  if (poll_ == Span{0}) poll_ = std::min(shortest_poll, recheck);
  return from + poll_;
}

void OtherProcesses::granted(Asks how, Time now, Span recheck) noexcept {
  if (how == Asks::unwoken) loses_wake_ups_ = true;
  if (how == Asks::woken) loses_wake_ups_ = false;
  poll_ = Span{0};
  in_vain_ = 0;
  quiet_until_ = are_ahead() ? quiet_until(now, recheck) : Time::min();
}

void OtherProcesses::refused(Asks how, bool by_turn, Time ask, Time latest,
                             Span longest_poll) noexcept {
  if (how == Asks::early) ++in_vain_;
  quiet_until_ = std::max(ask, std::min(quiet_until(ask, longest_poll), latest));
  if (by_turn) poll_ = std::min(2 * poll_, longest_poll);
}

void OtherProcesses::renewed(bool was_behind, Time ask, Span recheck) noexcept {
  if (!are_ahead()) {
    found_first_ = was_behind && wake_ups_arrive() && !is_woken_;
    quiet_until_ = Time::min();
  } else if (!was_behind || wake_ups_arrive()) {
    quiet_until_ = std::max(quiet_until_, quiet_until(ask, recheck));
  }
}

void OtherProcesses::expect_enough(Time at, Word beyond, Time now, Span recheck) noexcept {
  enough_ = std::min(granted_ + std::max(units_ahead_, beyond), word_limit);
  enough_at_ = Time::max();
  if (at == Time::max()) return;
  const Span wait = std::max(Span{0}, at - now);
  const Span once = std::max(std::min(wait, recheck), shortest_poll);
  const Span pause = std::min(once * (1 << std::min(in_vain_, 16U)), recheck);
  enough_at_ = now + (in_vain_ == 0 ? wait : std::max(wait, pause));
}

Step QueueTicket::turn_step(const Caller& caller, const Caller& next, Time now) const noexcept {
  return {&wait_line_turn,
          key(),
          {word_limit, client_, caller.arrival, ttl_.count(), caller.units, next.arrival,
           next.units, others_.enough(now)}};
}

Step QueueTicket::enter_step(const Caller& caller, Span life) const noexcept {
  return {
      &wait_line_enter, key(), {word_limit, client_, caller.arrival, life.count(), caller.units}};
}

void QueueTicket::leave(Word at) noexcept try {
  const Step step{&wait_line_leave, key(), {word_limit, client_, at}};
  auto wake_next = [ticket = shared_from_this()](const Outcome& outcome) noexcept {
    if (!outcome.error && outcome.output[1] != 0) ticket->wake({outcome.output[1], Woken::by_turn});
  };
  store_.execute(step, completion_of(std::move(wake_next)));
} catch (const std::bad_alloc&) {
  return;  // the ticket ends with its TTL
}

void QueueTicket::listen(const std::shared_ptr<WaitQueues>& queues,
                         const std::string& queue) noexcept try {
  if (store_.is_over()) return;
  const auto subscribe = [&](Woken by) {
    const std::string name = wake_up_name(name_, client_, by);
    return store_.get().subscribe({tag_, name}, [weak = std::weak_ptr(queues), queue, by] {
      if (const auto alive = weak.lock()) alive->wake_first(queue, by);
    });
  };
  turns_ = subscribe(Woken::by_turn);
  releases_ = subscribe(Woken::by_release);
} catch (const std::bad_alloc&) {
  return;  // the first waiter asks again by its own timer
}

void QueueTicket::entered(Word arrival, Word rank, Time sent, Span life) noexcept {
  is_entered_ = true;
  stored_arrival_ = arrival;
  rank_ = rank;
  alive_until_ = sent + life;
  others_.set_listening(turns_ != nullptr && releases_ != nullptr);
}

void QueueTicket::passed_on(const Caller& next, Word rank, Time sent, Span life) noexcept {
  is_entered_ = next.arrival != 0;
  rank_ = rank;
  stored_arrival_ = next.arrival;
  alive_until_ = sent + life;
  was_contended_ = false;
}

/// The ticket in the store may have the arrival of a waiter that has gone, which is ahead of other
/// processes. Two processes in that state would refuse each other for ever.
bool QueueTicket::must_enter(Word rank) const noexcept {
  return is_entered_ ? others_.first() != 0 && is_misplaced(rank) : was_contended_;
}

Time QueueTicket::renew_at(Word rank, Time ask, Time now) const noexcept {
  if (!is_entered_ || is_misplaced(rank)) return Time::min();
  const Span margin = ttl_ / 4;
  if (alive_until_ < ask + margin && ask > now) {  // it would expire before the hint
    return alive_until_ - longest_hint / 2 - margin;
  }
  return std::max(ask, std::min(alive_until_ - margin, others_.gone_at()));
}

}  // namespace sluice::detail
