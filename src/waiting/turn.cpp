// A wait in a line across processes: what the first caller of this process asks when, and what it
// learns of the others. All but entered() under the mutex of Lines.
#include <algorithm>
#include <utility>

#include "sluice/detail/wait_queues.hpp"

namespace sluice::detail {
namespace {

// While others stand before us and no wake-up has come, we ask after this, then after twice as
// long, up to WaitQueueOptions::recheck; with wake-ups that are known to come, after that at once.
constexpr Span shortest_poll = std::chrono::milliseconds{1};

std::span<const Word> told_of_turn(const Outcome& outcome) noexcept {
  return outcome.output.last(WaitLineRule::output);
}

}  // namespace

/// The outcome of what is waited for: granted, if it is our turn as well.
Outcome Waiter::without_turn(const Outcome& outcome) noexcept {
  Outcome own{{},
              outcome.steps.front(),
              outcome.steps.first(1),
              outcome.output.first(outcome.output.size() - WaitLineRule::output)};
  own.decision.allowed = outcome.decision.allowed;
  return own;
}

/// Its next step follows at once: it is not to wait for a time, or a clock that moves by itself
/// whenever all wait would move.
bool Waiter::is_about_to_ask() const noexcept {
  return goes_on_ && line_->queue.begin()->get() == this;
}

/// May it ask while others of this process do? Only if no other process waits: it might be refused
/// for each that is granted.
bool Waiter::may_join() const noexcept {
  const QueueTicket* const place = terms_.place.get();
  const Time now = terms_.clock.now();
  if (place == nullptr) return now >= pause_end(now);
  return place->first == 0 && now >= place->rest_until;
}

/// What is to be asked now: `step`, for Next::ask the one beside what is waited for.
Waiter::Next Waiter::choose(Time now, std::optional<Step>& step, bool& listen) noexcept {
  QueueTicket& place = *terms_.place;
  const bool due = now >= ask_at_ || (place.woken && terms_.freed_early);
  const bool free = place.woken || now >= place.rest_until;
  if (now >= terms_.deadline || (due && free && !is_misplaced())) {
    step = ask_for_turn();
    return Next::ask;
  }
  if (refresh_at(now) > now) return Next::nothing;
  listen = !std::exchange(place.listens, true);
  step = enter(now);
  return Next::enter;
}

Step Waiter::ask_for_turn() noexcept {
  QueueTicket& place = *terms_.place;
  polls_ = place.behind && !place.woken;
  called_ = place.behind && place.woken;
  place.woken = false;
  const Waiter* const next = successor();
  next_rank_ = next != nullptr ? next->rank_ : 0;
  next_arrival_ = next != nullptr ? arrival_of(*next) : 0;
  life_ = place.ttl();
  return place.turn(arrival_of(*this), next_arrival_);
}

Step Waiter::enter(Time now) noexcept {
  QueueTicket& place = *terms_.place;
  stage_ = Stage::entering;
  // Nobody can be granted before the limiter's hint, so until then the place blocks nobody.
  const Span hint = terms_.freed_early ? Span{0} : std::max(now, ask_at_) - now;
  life_ = place.ttl() + std::min(hint, QueueTicket::longest_hint);
  place.since = arrival_of(*this);
  return place.enter(place.since, life_);
}

/// Others are refused for a place that is not this caller's, but that of one that has gone. Two
/// processes in that state would each wait for the other.
bool Waiter::is_misplaced() const noexcept {
  const QueueTicket& place = *terms_.place;
  return place.behind && place.entered && place.since != arrival_of(*this);
}

/// When the place must be renewed, or entered.
Time Waiter::refresh_at(Time now) const noexcept {
  const QueueTicket& place = *terms_.place;
  if (!place.entered || place.rank != rank_ || is_misplaced()) return Time::min();
  const Span half = place.ttl() / 2;
  const Time ask = terms_.freed_early ? now : std::max(now, ask_at_);
  if (place.alive_until < ask + half && ask > now) {  // it would die before it can be granted
    return place.alive_until - QueueTicket::longest_hint / 2 - half;
  }
  return std::max(ask, place.alive_until - half);
}

Span Waiter::first_poll() const noexcept {
  const Span recheck = terms_.lines->options_.recheck;
  const QueueTicket& place = *terms_.place;
  return place.hears && !place.loses_wake_ups ? recheck : std::min(shortest_poll, recheck);
}

void Waiter::rest(Time now) noexcept {
  const QueueTicket& place = *terms_.place;
  --line_->asking;
  stage_ = Stage::resting;
  const Time ask = place.woken ? ask_at_ : std::max(ask_at_, place.rest_until);
  until_ = std::min({ask, refresh_at(now), terms_.deadline});
}

/// When it came, by the store's clock. Not known: behind all.
Word Waiter::arrival_of(const Waiter& waiter) const noexcept {
  const auto ahead = terms_.lines->ahead_;
  return ahead ? std::clamp(waiter.rank_ + ahead->count(), Word{1}, word_limit) : word_limit;
}

/// Whose turn is next in this process; null if there is nobody.
const Waiter* Waiter::successor() noexcept {
  if (!terms_.lines->ahead_) return nullptr;
  const auto next = std::next(line_->queue.find(shared_from_this()));
  return next == line_->queue.end() ? nullptr : next->get();
}

/// The answer was made between asking and now: as far off as that leaves no doubt, the two clocks
/// differ.
void Waiter::learn_clock(Time at) noexcept {
  auto& ahead = terms_.lines->ahead_;
  const Span least = at - terms_.clock.now();
  const Span most = at - sent_;
  ahead = least <= most ? std::clamp(ahead.value_or(Span{0}), least, most) : most;
}

/// Notes what the answer to a request for a turn says of the line.
void Waiter::learn(const Outcome& outcome) noexcept {
  QueueTicket& place = *terms_.place;
  const Decision& turn = outcome.steps[1];
  if (!is_degraded(outcome.decision.source)) learn_clock(turn.at);
  place.first = told_of_turn(outcome)[1];
  open_ = outcome.steps[0].allowed;
  clear_in_ = turn.allowed ? Span{0} : turn.retry_after;
  place.behind = outcome.decision.allowed ? told_of_turn(outcome)[0] > 0 : !turn.allowed;
}

/// After a grant the place is the next caller's. Says which process to wake, 0: none.
Word Waiter::pass_on(const Decision& decision) noexcept {
  QueueTicket& place = *terms_.place;
  const Time now = terms_.clock.now();
  const bool full = terms_.freed_early && decision.remaining == 0;
  place.entered = next_arrival_ != 0;
  place.rank = next_rank_;
  place.since = next_arrival_;
  place.alive_until = sent_ + life_;
  if (polls_) place.loses_wake_ups = true;
  if (called_) place.loses_wake_ups = false;
  place.poll = Span{0};
  place.rest_until = Time::min();
  if (full) {  // what comes back wakes whose turn it is
    place.rest_until = now + terms_.lines->options_.recheck;
  } else if (place.behind) {
    place.rest_until = now + first_poll();
  }
  return place.behind && decision.remaining > 0 ? place.first : 0;
}

/// To be asked again in time, or over.
Waiter::PendingActions Waiter::refuse_in_place(Span hint, Time now) noexcept {
  QueueTicket& place = *terms_.place;
  const Span recheck = terms_.lines->options_.recheck;
  if (open_) hint = Span{0};
  const Span left = terms_.deadline - now;
  if (left <= Span{0} || (!terms_.freed_early && hint > left)) {
    return end_refused(std::max(hint, clear_in_));
  }
  stage_ = Stage::queued;  // asks again when it is the first, and its time has come
  if (line_->queue.begin()->get() != this) return {.timer = true};
  goes_on_ = true;
  ask_at_ = now + rest_after(hint);
  place.rest_until = Time::min();
  if (terms_.freed_early && line_->freed != freed_) {  // perhaps just after it was refused
    ask_at_ = now;
    place.woken = true;
    return {.timer = true};
  }
  if (!place.behind) return {};
  if (place.poll == Span{0}) place.poll = first_poll();
  place.rest_until = std::max(ask_at_, std::min(ask_at_ + place.poll, now + clear_in_));
  if (!open_) return {};
  place.poll = std::min(2 * place.poll, recheck);
  // It could be granted, and seems not to know. But who was woken wakes nobody, or two could go on
  // for ever.
  return {.wake = called_ ? 0 : place.first};
}

void Waiter::entered(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  PendingActions turn;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(waiter.terms_.lines->mutex_);
    alive = std::move(waiter.self_);
    --waiter.line_->asking;
    QueueTicket& place = *waiter.terms_.place;
    place.entered = true;  // after an error too: it is tried again when the place would be renewed
    place.rank = waiter.rank_;
    place.alive_until = waiter.sent_ + waiter.life_;
    place.hears = place.is_watching();
    if (!outcome.error) {
      const bool was_behind = place.behind;
      const auto told = told_of_turn(outcome);
      if (!is_degraded(outcome.decision.source)) waiter.learn_clock(outcome.decision.at);
      place.first = told[1];
      place.behind = told[0] > 0;
      if (!place.behind) {
        place.rest_until = Time::min();
      } else if (!was_behind) {
        place.rest_until = std::max(place.rest_until, waiter.ask_at_ + waiter.first_poll());
        turn.wake = place.first;
      }
    }
    if (waiter.cancelled_) {
      turn = waiter.end(Errc::cancelled, turn.wake);
    } else {
      waiter.stage_ = Stage::queued;
      waiter.goes_on_ = true;
      turn.timer = true;  // it may not be the first any more
    }
  }
  waiter.run(turn);
}

}  // namespace sluice::detail
