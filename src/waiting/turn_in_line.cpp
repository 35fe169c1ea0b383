#include "src/waiting/turn_in_line.hpp"

#include <algorithm>

#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// A process whose callers have a higher priority is before one whose callers came up to 12 days
// earlier: no wait lasts so long. Arrivals by today's epoch remain below 2^52 for 80 years.
constexpr Word class_span = Word{1} << 40;

/// A turn passes on by an answer, a wake-up and a request. True if the limit, which has left this
/// and refills one in `unit`, would not grant all it can in that way.
bool turns_are_too_slow(Span round_trip, Span unit, const Decision& left) noexcept {
  const Span turn = 2 * round_trip;
  if (unit > Span{0}) return turn > unit;
  return left.remaining > 0 && turn > left.reset_after / left.remaining;
}

auto line_output(const Outcome& outcome) noexcept {
  return outcome.output.last<WaitLineRule::output>();
}

}  // namespace

WaitQueue& TurnInLine::queue() const noexcept { return *call_.home().queue; }

Span TurnInLine::recheck() const noexcept { return call_.home().queues->options_.recheck; }

/// What the limiter has is lost to all until the process whose turn it is asks; without wake-ups it
/// asks so late. What comes back early is found within a recheck in any case.
Span TurnInLine::longest_poll() const noexcept {
  constexpr Span longest = std::chrono::milliseconds{64};
  return call_.home().freed_early ? recheck() : std::min(longest, recheck());
}

/// What orders processes, by the clock of the wait: the highest priority that waits here, or is
/// this waiter's, and since when that waits.
Word TurnInLine::rank() const noexcept {
  const Line::Place own = WaitQueue::place_of(call_);
  const Line::Place place = std::max(own, queue().line.oldest().value_or(own), &Line::is_behind);
  const QueuedCall& oldest = place == own ? call_ : *queue().waiters.find(place.number)->second;
  return oldest.arrival_.at - place.priority * class_span;
}

/// A rank by the store's clock; behind all others if that clock is not known.
Word TurnInLine::arrival_of(Word rank) const noexcept {
  const auto lead = call_.home().queues->store_clock_lead_;
  return lead ? std::clamp(rank + lead->count(), Word{1}, word_limit) : word_limit;
}

/// One that takes none has a place as well.
Word TurnInLine::units() const noexcept { return std::max<Word>(call_.home().units, 1); }

bool TurnInLine::is_due(Time now) const noexcept {
  return now >= std::min(ask_at_, call_.recheck_at()) ||
         (others_.have_woken() && call_.home().freed_early);
}

bool TurnInLine::may_ask_too(Time now) const noexcept {
  return others_.may_ask_beside(now, static_cast<Word>(queue().in_flight) * units());
}

bool TurnInLine::may_ask(Time now) const noexcept {
  const bool must_enter = queue().in_flight == 1 && ticket_->must_enter(rank());
  return is_due(now) && others_.ask_at(now) <= now && !must_enter;
}

Step TurnInLine::turn_step(Time now) noexcept {
  const TurnInLine* const next = successor();
  next_rank_ = next != nullptr ? next->rank() : 0;
  next_ = {next != nullptr ? arrival_of(next_rank_) : 0, next != nullptr ? next->units() : 1};
  life_ = ticket_->ttl();
  asks_ = others_.ask(now);
  return ticket_->turn_step({arrival_of(rank()), units()}, next_, now);
}

Step TurnInLine::enter_step(Time now) noexcept {
  // No process can be granted before the limiter's hint, so a ticket delays nobody until then.
  const Span hint = call_.home().freed_early ? Span{0} : std::max(now, ask_at_) - now;
  life_ = ticket_->ttl() + std::min(hint, QueueTicket::longest_hint);
  sent_rank_ = rank();
  moves_back_ = ticket_->is_before(sent_rank_);
  others_.begin_look();
  sent_arrival_ = arrival_of(sent_rank_);
  return ticket_->enter_step({sent_arrival_, units()}, life_);
}

Time TurnInLine::renew_at(Time now) const noexcept {
  const Time ask = call_.home().freed_early ? now : std::max(now, ask_at_);
  return ticket_->renew_at(rank(), ask, now);
}

Time TurnInLine::sleeps_until(Time now) const noexcept {
  const Time at = std::min(others_.ask_at(ask_at_), renew_at(now));
  const bool may_ask = !others_.are_ahead() || others_.have_woken();
  return may_ask ? std::min(at, call_.recheck_at()) : at;
}

/// Of the next waiter of this process that can take the ticket while this one asks, or null.
TurnInLine* TurnInLine::successor() const noexcept {
  if (!call_.home().queues->store_clock_lead_) return nullptr;
  const WaitCourse* const first = queue().first();
  if (first == nullptr || !first->turn_ || first->turn_->ticket_ != ticket_) return nullptr;
  return first->turn_.get();
}

/// After a grant to another of this process: when the limiter has units for this waiter.
/// Time::max(): not known.
Time TurnInLine::own_units_at() const noexcept {
  const Decision& left = queue().left;
  if (left.remaining >= call_.home().units) return queue().left_at;
  const Span refill = call_.limit().refill_time(left);
  return refill == Span{0} ? Time::max() : queue().left_at + refill;
}

/// Where turns are too slow, the waiter asks without its turn once the limiter has units for it and
/// all ahead; at `own` it has them for the waiter, and `beyond` for others. Older callers of
/// another process may come between.
void TurnInLine::expect_enough(const Decision& left, Time own, Word beyond, Time now) noexcept {
  const auto time_for = [this](Word further) {
    return call_.limit().time_for(call_.home().units, further);
  };
  const Word missing = others_.units_ahead() - beyond;
  Time at = Time::max();
  if (call_.limits_.size() == 1 && own != Time::max() &&
      turns_are_too_slow(others_.round_trip(), time_for(1), left)) {
    const Span further = missing > 0 ? time_for(missing) : Span{0};
    if (missing <= 0 || further > Span{0}) at = own + further;  // else it is not known
  }
  others_.expect_enough(at, beyond, now, recheck());
}

/// The store answered between sending and now, which bounds the difference of the two clocks. The
/// estimate changes only as far as the bounds require.
void TurnInLine::note_store_clock(Time at) noexcept {
  auto& lead = call_.home().queues->store_clock_lead_;
  const Span least = at - call_.clock_.now();
  const Span most = at - call_.request_.sent();
  lead = least <= most ? std::clamp(lead.value_or(Span{0}), least, most) : most;
}

void TurnInLine::hear_turn(const Outcome& outcome, const Outcome& own) noexcept {
  const Decision& turn = outcome.steps.back();
  if (!is_degraded(outcome.decision.source)) note_store_clock(turn.at);
  limiter_grants_ = std::all_of(own.steps.begin(), own.steps.end(),
                                [](const Decision& each) { return each.allowed; });
  ahead_expire_in_ = turn.allowed ? Span{0} : turn.retry_after;
  // If only the limiter refuses, the answer is of the next waiter's place.
  const bool counts = outcome.decision.allowed || !turn.allowed;
  const Time now = call_.clock_.now();
  others_.hear(line_output(outcome), now - call_.request_.sent(), counts, now);
  if (!counts && asks_ != Asks::early) others_.forget_those_ahead();
  if (!others_.are_ahead()) others_.ask_at_once();
}

NextProcess TurnInLine::pass_on() noexcept {
  const Time now = call_.clock_.now();
  ticket_->passed_on(next_, next_rank_, call_.request_.sent(), life_);
  others_.granted(asks_, now, recheck());
  if (TurnInLine* const next = successor()) {
    const Decision& left = queue().left;
    const Word beyond = std::max<Word>(0, left.remaining - next->call_.home().units);
    next->expect_enough(left, next->own_units_at(), beyond, now);
  }
  if (next_.arrival == 0 && others_.first() != 0) {
    call_.home().queues->note_contended(call_.home().key, now);
  }
  if (queue().left.remaining == 0) others_.take_release();
  if (!others_.are_ahead()) return {};
  return {others_.first(), others_.take_release()};
}

void TurnInLine::woken(Time now) noexcept {
  ask_at_ = now;
  others_.ask_at_once();
  others_.woke(Woken::by_turn);
}

NextProcess TurnInLine::refused(Time ask, Time now) noexcept {
  ask_at_ = ask;
  others_.ask_at_once();
  const Woken by = others_.take_release();
  if (!others_.are_ahead()) return {};
  others_.refused(asks_, limiter_grants_, ask, now + ahead_expire_in_, longest_poll());
  const Decision& refusal = call_.refusal_;
  expect_enough(refusal, limiter_grants_ ? now : ask, limiter_grants_ ? refusal.remaining : 0, now);
  if (!limiter_grants_) return {};
  // The first process could be granted, and does not seem to know. A process that was woken itself
  // wakes nobody: two could wake each other for ever.
  return {asks_ == Asks::woken || asks_ == Asks::early ? 0 : others_.first(), by};
}

NextProcess TurnInLine::entered(const Outcome& outcome) noexcept {
  const bool was_behind = others_.are_ahead();
  ticket_->entered(sent_arrival_, sent_rank_, call_.request_.sent(), life_);
  if (outcome.error) {
    // Nobody wakes it while the store is away, and its limiter may have a policy.
    others_.ask_at_once();
    return {};
  }
  const Time now = call_.clock_.now();
  if (!is_degraded(outcome.decision.source)) note_store_clock(outcome.decision.at);
  others_.hear(line_output(outcome), now - call_.request_.sent(), true, now);
  others_.renewed(was_behind, ask_at_, recheck());
  if (!others_.are_ahead()) return {};
  if (!was_behind) {
    expect_enough(call_.refusal_, ask_at_ < now ? Time::max() : ask_at_, 0, now);
  }
  return {moves_back_ ? others_.first() : 0, Woken::by_turn};
}

Word TurnInLine::leave_if_nobody_waits() const noexcept {
  const auto& queues = call_.home().queues->queues_;
  const auto found = queues.find(call_.home().key);
  const bool anybody = found != queues.end() && found->second.homes > 0;
  return anybody ? 0 : sent_arrival_;
}

}  // namespace sluice::detail
