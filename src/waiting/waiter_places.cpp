// The places of a call in the queues of its limits, and how it moves between them. Everything runs
// under the mutex of the waits.
#include <algorithm>
#include <utility>

#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {

/// Keeps the queues of its limits while it waits.
void Waiter::take_places() {
  for (Place& place : places_) {
    WaitQueue& queue = place.queues->take_queue(place.key);
    place.queue = &queue;
    place.wakes = queue.wakes;
    place.releases = queue.releases;
    ++queue.callers;
  }
}

/// Joins the queue of its home, where no grant is possible before `asleep_until`, which is `hint`
/// after the refusal; zero: not known.
Waiter::PendingActions Waiter::join(Time asleep_until, Span hint) noexcept {
  try {
    PendingActions actions = join_line();
    if (stage_ != Stage::done) sleep_after_joining(asleep_until, hint);
    return actions;
  } catch (const std::bad_alloc&) {
    return end(std::make_error_code(std::errc::not_enough_memory));
  }
}

Waiter::PendingActions Waiter::join_line() {
  WaitQueue& queue = *home().queue;
  const WaitQueueOptions& options = home().queues->options_;
  queue.line.set_lower_share(options.lower_share);
  std::shared_ptr<Waiter> victim;
  if (queue.homes >= options.max_waiters) victim = overflow_victim();
  if (victim.get() == this) return end(Errc::too_many_waiters);
  take_ticket();
  Waiter* const first = queue.first();
  queue.insert(shared_from_this());
  stage_ = Stage::queued;
  joined_ = clock_.now();
  PendingActions actions{.timer = true};
  if (first != nullptr && first != this && queue.first() == this) {
    actions.overtaken = first->shared_from_this();
  }
  if (victim) {
    actions.dropped_leaves = victim->end(Errc::too_many_waiters).leave;
    actions.dropped = std::move(victim);
  }
  return actions;
}

/// The first who waits decides whether the queue has a ticket. A plan that is full has no room for
/// the question whose turn it is.
void Waiter::take_ticket() {
  const ClaimedLimit& limit = *limits_[home_];
  WaitQueue& queue = *home().queue;
  ticket_ = nullptr;
  if (!limit.is_shared() || plan_size_ == Plan::max_steps) return;
  if (queue.homes > 0) {
    ticket_ = queue.ticket.lock();
    return;
  }
  if (!store_.is_over()) ticket_ = home().queues->ticket(store_.get(), limit.key(), home().key);
  queue.ticket = ticket_;
}

/// A call that moved here has just been refused.
void Waiter::sleep_after_joining(Time asleep_until, Span hint) noexcept {
  const Time now = clock_.now();
  earliest_ = {};
  ask_at_ = Time::min();
  if (!is_first() || asleep_until <= now || was_woken()) return;
  earliest_ = now + hint;
  if (ticket_) {
    ticket_->is_woken = false;
    ask_at_ = now + sleep_after(hint);
    return;
  }
  stage_ = Stage::sleeping;
  until_ = std::min(now + sleep_after(hint), recheck_at());
  if (home().freed_early) until_ = std::min(until_, deadline_);
}

/// That it surely takes of the limit of this queue, if it is granted.
Word Waiter::own_units() const noexcept { return limits_.size() > 1 ? 0 : home().units; }

/// How long the waiter waits at least behind the first, which sleeps, and others that surely take
/// `ahead` units. Zero: not known.
Span Waiter::wait_behind(const Waiter& first, Word ahead) const noexcept {
  const Time now = clock_.now();
  const Time grant = std::max(now, first.earliest_);
  // The hint of a decision without the store is none of its grants, and who sleeps for its turn may
  // leave more behind than its grant does.
  if (is_degraded(first.refusal_.source) || grant <= now) return grant - now;
  // The first may leave its units, and move to the queue of another limit.
  const Word left = first.home().units - first.own_units();
  return grant - now + time_for(first.home().units, std::max<Word>(0, ahead + home().units - left));
}

/// The waiter that a full queue gives up. One whose request is at the store stays, since the answer
/// may be a grant.
std::shared_ptr<Waiter> Waiter::overflow_victim() noexcept {
  if (home().queues->options_.overflow == Overflow::refuse_newest) return shared_from_this();
  for (const auto& [number, waiter] : home().queue->waiters) {
    if (!waiter->is_at_store()) return waiter;
  }
  return shared_from_this();
}

bool Waiter::is_first() const noexcept { return home().queue->first() == this; }

/// It is the first, and no request is in flight.
bool Waiter::is_next() const noexcept { return home().queue->in_flight == 0 && is_first(); }

bool Waiter::shares_flow_with(const Waiter& other) const noexcept {
  const Caller& a = caller_;
  const Caller& b = other.caller_;
  return a.priority == b.priority && a.flow == b.flow;
}

/// How long the first waiter still sleeps; zero if it does not, or is this one.
Span Waiter::sleep_of_first() const noexcept {
  const Waiter* const first = home().queue->first();
  if (first == nullptr || first == this || first->stage_ != Stage::sleeping) return Span{0};
  const Time now = clock_.now();
  return std::max(now, first->earliest_) - now;
}

/// The waiter need not ask before this instant: the units of this limit cannot be there before. A
/// waiter whose deadline comes first asks at once, and the answer is final.
Time Waiter::units_at(std::size_t index, Time now) const noexcept {
  const Place& place = places_[index];
  const WaitQueue& queue = *place.queue;
  Time at = queue.last_grant + limits_[index]->refill_time(queue.left);
  if (place.wakes == queue.wakes) at = std::max(at, place.refused_until);
  if (place.freed_early) at = std::min(at, deadline_);
  return at <= deadline_ ? std::max(now, at) : now;
}

Time Waiter::pause_end(Time now) const noexcept { return units_at(home_, now); }

/// Another of its limits whose units cannot be there before those of its home.
std::optional<std::size_t> Waiter::slower_limit(Time now) const noexcept {
  std::optional<std::size_t> slowest;
  Time latest = pause_end(now);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (const Time at = units_at(i, now); at > latest) {
      slowest = i;
      latest = at;
    }
  }
  return slowest;
}

/// The ticket is given up if nobody else here waits for the limit; or asks for it, since this call
/// keeps its turn: a turn is kept in one process only.
Waiter::PendingActions Waiter::leave_home() noexcept {
  PendingActions actions{.ticket = ticket_};
  if (!std::exchange(is_at_home_, false)) return actions;
  const bool is_last = --home().queue->homes == 0;
  const bool gives_up = is_last || home().is_in_line;
  if (gives_up && ticket_ && std::exchange(ticket_->is_entered, false)) {
    actions.leave = ticket_->stored_arrival;
  }
  return actions;
}

Waiter::PendingActions Waiter::leave_queues() noexcept {
  for (Place& place : places_) {
    if (place.is_in_line) place.queue->erase(*this, place);
  }
  PendingActions actions = leave_home();
  for (Place& place : places_) {
    if (place.queue != nullptr) --place.queue->callers;
    place.queue = nullptr;
  }
  return actions;
}

/// The place of a limit: of the first one with that key.
std::size_t Waiter::place_at(std::size_t limit) const noexcept {
  return place_in(*places_[limit].queue).value_or(limit);
}

/// The place in this queue.
std::optional<std::size_t> Waiter::place_in(const WaitQueue& queue) const noexcept {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].queue == &queue) return i;
  }
  return std::nullopt;
}

/// It is its turn at its home.
bool Waiter::is_at_its_turn() const noexcept { return is_at_store() || is_first(); }

/// When it next loses a turn that it keeps elsewhere.
Time Waiter::next_lapse() const noexcept {
  Time next = Time::max();
  for (const Place& place : places_) {
    if (place.is_in_line && place.queue != home().queue && place.keeps_until >= clock_.now()) {
      next = std::min(next, place.keeps_until + Span{1});
    }
  }
  return next;
}

/// Another of its limits for which a call waits that goes before this one.
std::optional<std::size_t> Waiter::sleeper_ahead() noexcept {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].queue == home().queue) continue;
    if (places_[i].queue->is_waited_for_before(*this, places_[i])) return i;
  }
  return std::nullopt;
}

/// It goes where it would be refused, without asking.
std::optional<Waiter::PendingActions> Waiter::move_before_asking() noexcept {
  const Time now = clock_.now();
  if (limits_.size() == 1) return std::nullopt;
  // Not for ever: calls of several flows may each be behind another somewhere.
  const bool may_move = moves_ < most_moves;
  const bool asks = pause_end(now) <= now && (!ticket_ || is_due(now));
  if (const auto other = asks && may_move ? sleeper_ahead() : std::nullopt) {
    home().queue->put_back(*this);
    return move_to(*other, now, Time{}, Span::max());
  }
  if (const auto slower = may_move ? slower_limit(now) : std::nullopt) {
    const Time at = units_at(*slower, now);
    home().queue->put_back(*this);
    return move_to(*slower, now, at, at - now);
  }
  return std::nullopt;
}

/// While it waits `hint` for another limit. When a lease is released is not known. Nobody takes
/// anything of a gate, which is open or closed for all.
bool Waiter::keeps_turn(std::size_t index, std::size_t next, Span hint) const noexcept {
  const Place& place = places_[index];
  if (place.waited == Span{0} || hint == Span::max()) return false;
  if (limits_[index]->close_step(Span{0}) || limits_[next]->close_step(Span{0})) return false;
  return places_[next].freed_early || place.waited >= hint;
}

/// It was asked for at its home for the last time at `asked`.
Waiter::PendingActions Waiter::move_to(std::size_t next, Time asked, Time asleep_until,
                                       Span hint) noexcept {
  ++moves_;
  home().waited += std::max(Span{0}, asked - joined_);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (!place.is_in_line || i == next) continue;
    if (keeps_turn(i, next, hint)) {
      place.queue->line.keep_turn(WaitQueue::place_of(*this));
      place.keeps_until = clock_.now() + place.waited;
    } else {
      place.queue->erase(*this, place);
    }
  }
  const PendingActions left = leave_home();
  home_ = next;
  PendingActions actions = join(asleep_until, hint);
  actions.ticket = left.ticket;
  actions.leave = left.leave;
  return actions;
}

}  // namespace sluice::detail
