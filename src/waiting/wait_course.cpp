#include <algorithm>
#include <utility>

#include "sluice/detail/waiter.hpp"
#include "src/waiting/turn_in_line.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// A hint that was given without the store may be far too long: the store may be back at any time,
// and is only tried when somebody asks.
constexpr Span longest_degraded_sleep = std::chrono::milliseconds{50};

Span degraded_sleep(const Decision& refusal, Span hint) noexcept {
  return refusal.source == Source::fallback ? std::min(hint, longest_degraded_sleep) : hint;
}

}  // namespace

WaitCourse::WaitCourse(ClaimedLimits limits, const Deadline& deadline, Caller caller)
    : QueuedCall(std::move(limits), deadline, std::move(caller)),
      store_(limits_.front()->store()),
      plan_(limits_) {}

WaitCourse::~WaitCourse() = default;

std::shared_ptr<Waiter> WaitCourse::shared() noexcept {
  return static_cast<Waiter*>(this)->shared_from_this();
}

/// Its next request follows at once. It must not count as waiting for an instant: a clock that
/// advances whenever all threads wait would advance.
bool WaitCourse::is_about_to_ask() const noexcept {
  return resumes_ && home().queue->in_flight == 0 && is_first();
}

bool WaitCourse::is_at_store() const noexcept {
  return stage_ == Stage::preparing || stage_ == Stage::asking || stage_ == Stage::entering;
}

/// Joins the queue of its home, where no grant is possible before `asleep_until`, which is `hint`
/// after the refusal; zero: not known.
PendingActions WaitCourse::join(Time asleep_until, Span hint) noexcept {
  try {
    PendingActions actions = join_line();
    if (stage_ != Stage::done) sleep_after_joining(asleep_until, hint);
    return actions;
  } catch (const std::bad_alloc&) {
    return end(std::make_error_code(std::errc::not_enough_memory));
  }
}

PendingActions WaitCourse::join_line() {
  WaitQueue& queue = *home().queue;
  const WaitQueueOptions& options = home().queues->options_;
  queue.line.set_lower_share(options.lower_share);
  std::shared_ptr<Waiter> victim;
  if (queue.homes >= options.max_waiters) victim = queue.victim_of(shared(), options.overflow);
  if (victim.get() == this) return end(Errc::too_many_waiters);
  take_ticket();
  Waiter* const first = queue.first();
  queue.insert(shared());
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
void WaitCourse::take_ticket() {
  WaitQueue& queue = *home().queue;
  turn_ = nullptr;
  if (!limit().is_shared() || plan_.is_full()) return;
  std::shared_ptr<QueueTicket> ticket;
  if (queue.homes > 0) {
    ticket = queue.ticket.lock();
  } else if (!store_.is_over()) {
    ticket = home().queues->ticket(store_.get(), limit().key(), home().key);
  }
  queue.ticket = ticket;
  if (ticket) turn_ = std::make_unique<TurnInLine>(*this, std::move(ticket));
}

/// A call that moved here has just been refused.
void WaitCourse::sleep_after_joining(Time asleep_until, Span hint) noexcept {
  const Time now = clock_.now();
  earliest_ = {};
  if (!is_first() || asleep_until <= now || was_woken()) return;
  if (!turn_) return sleep(now, hint);
  earliest_ = now + hint;
  turn_->wait_for_hint(now + sleep_after(home(), hint));
}

/// It goes where it would be refused, without asking.
std::optional<PendingActions> WaitCourse::move_before_asking() noexcept {
  const Time now = clock_.now();
  if (limits_.size() == 1) return std::nullopt;
  // Not for ever: calls of several flows may each be behind another somewhere.
  const bool may_move = moves_ < most_moves;
  const bool asks = pause_end(now) <= now && (!turn_ || turn_->is_due(now));
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

/// It was asked for at its home for the last time at `asked`.
PendingActions WaitCourse::move_to(std::size_t next, Time asked, Time asleep_until,
                                   Span hint) noexcept {
  keep_turns(next, asked, hint);
  const PendingActions left = leave_home();
  home_ = next;
  PendingActions actions = join(asleep_until, hint);
  actions.ticket = left.ticket;
  actions.leave = left.leave;
  return actions;
}

PendingActions WaitCourse::leave_home() noexcept {
  PendingActions actions;
  if (turn_) actions.ticket = turn_->ticket();
  if (quit_home() && turn_) actions.leave = turn_->ticket()->give_up();
  return actions;
}

PendingActions WaitCourse::leave_queues() noexcept {
  for (Place& place : places_) {
    if (place.is_in_line) place.queue->erase(*this, place);
  }
  PendingActions actions = leave_home();
  leave_places();
  return actions;
}

/// Whether it may ask while others of this process do.
bool WaitCourse::may_ask_too() const noexcept {
  const Time now = clock_.now();
  return turn_ ? turn_->may_ask_too(now) : now >= pause_end(now);
}

/// Something came back, or the turn did.
void WaitCourse::wake(bool by_release) noexcept {
  if (by_release) {
    earliest_ = Time::min();
    if (turn_) turn_->forget_hint();
    home().standing.note_release(*home().queue);
  }
  if (stage_ != Stage::sleeping) return;
  stage_ = Stage::queued;
  resumes_ = true;
}

/// `step` is that of Next::enter, and `listen` says that wake-ups are to be listened to first.
WaitCourse::Next WaitCourse::next_request(std::optional<Step>& step, bool& listen) noexcept {
  const Time now = clock_.now();
  const Next next = next_at(now);
  resumes_ = false;
  if (next == Next::nothing) {
    pause(now);
    return next;
  }
  if (next == Next::enter) {
    listen = turn_->ticket()->begin_listening();
    step = turn_->enter_step(now);
    stage_ = Stage::entering;
    home().queue->in_flight_limit = 1;  // nobody asks meanwhile
  } else {
    note_ask(now);
  }
  request_.begin(now, deadline_);
  self_ = shared();
  return next;
}

WaitCourse::Next WaitCourse::next_at(Time now) noexcept {
  const Time paused = pause_end(now);
  if (!turn_) return now < std::min(paused, recheck_at()) ? Next::nothing : Next::ask;
  earliest_ = std::max(earliest_, paused);
  turn_->wait_for(paused);
  if (now >= deadline_ || turn_->may_ask(now)) return Next::ask;
  return turn_->renew_at(now) <= now ? Next::enter : Next::nothing;
}

/// It need not ask yet.
void WaitCourse::pause(Time now) noexcept {
  home().queue->put_back(*this);
  stage_ = Stage::sleeping;
  if (turn_) {
    until_ = std::min(turn_->sleeps_until(now), deadline_);
  } else {
    home().queue->in_flight_limit = 1;
    earliest_ = pause_end(now);
    until_ = std::min(earliest_, recheck_at());
  }
}

PendingActions WaitCourse::take_answer(std::error_code error, const Decision& decision) noexcept {
  if (error) {
    const bool harmless = cancelled_ && error == Failure::not_executed;
    return end(harmless ? make_error_code(Errc::cancelled) : error);
  }
  if (!decision.allowed) return cancelled_ ? end(Errc::cancelled) : refuse(decision);
  home().queue->widen(decision.remaining);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    WaitQueue& queue = *places_[i].queue;
    queue.last_answer = clock_.now();
    // What came back meanwhile may have come before the grant, or after it.
    const bool is_known = !places_[i].standing.is_released(queue) && !is_degraded(decision.source);
    queue.note_left(is_known ? limits_[i]->decision() : Decision{}, queue.last_answer);
  }
  const NextProcess wake = turn_ ? turn_->pass_on() : NextProcess{};
  PendingActions actions = cancelled_ ? begin_refund() : end({});
  actions.wake = wake;
  return actions;
}

/// Asks again later, or ends.
PendingActions WaitCourse::refuse(const Decision& decision) noexcept {
  const Time now = clock_.now();
  const bool is_limited = !turn_ || !turn_->limiter_grants();  // else others are ahead
  const Span hint = is_limited ? std::max(Span{1}, decision.retry_after) : Span{0};
  refusal_ = decision;
  refused_by_ = place_at(refused_by_);
  last_refuser_ = refused_by_;
  Place& refuser = places_[refused_by_];
  refuser.queue->last_answer = now;
  const Span left = deadline_ - now;
  const bool is_never = hint >= Decision::never && limits_[refused_by_]->is_constant();
  const bool has_failed = left <= Span{0} || is_never || (!refuser.freed_early && hint > left);
  if (turn_ || !has_failed) home().queue->in_flight_limit = 1;
  if (has_failed) return end_refused(turn_ ? std::max(hint, turn_->ahead_expire_in()) : hint);
  if (is_limited) {
    refuser.standing.refuse(now + sleep_after(refuser, hint));
    const Time asleep_until = now + degraded_sleep(refusal_, hint);
    if (refused_by_ != home_) return move_to(refused_by_, request_.sent(), asleep_until, hint);
  }
  stage_ = Stage::queued;
  if (!is_first()) return {.timer = true};
  if (turn_) return refuse_in_line(hint, now);
  sleep(now, hint);
  return {.timer = true};
}

/// It was the first of its queue.
PendingActions WaitCourse::refuse_in_line(Span hint, Time now) noexcept {
  resumes_ = true;
  if (was_woken() || turn_->was_woken()) {  // perhaps after the store's refusal
    earliest_ = now;
    turn_->woken(now);
    return {.timer = true};
  }
  earliest_ = now + hint;
  return {.wake = turn_->refused(now + sleep_after(home(), hint), now), .ticket = turn_->ticket()};
}

/// Until the hint.
void WaitCourse::sleep(Time now, Span hint) noexcept {
  stage_ = Stage::sleeping;
  earliest_ = now + hint;
  until_ = std::min(now + sleep_after(home(), hint), recheck_at());
  if (home().freed_early) until_ = std::min(until_, deadline_);
}

/// How long a call sleeps that was refused at this place, with this hint.
Span WaitCourse::sleep_after(const Place& place, Span hint) const noexcept {
  if (place.freed_early) hint = std::min(hint, place.queues->options_.recheck);
  return degraded_sleep(refusal_, hint);
}

/// The wait ends without an answer. Only asking may have charged something: otherwise the last
/// refusal holds.
PendingActions WaitCourse::give_up() noexcept {
  home().queue->put_back(*this);
  const Errc harmless = cancelled_ ? Errc::cancelled : Errc::timed_out;
  const bool is_asking = stage_ == Stage::asking;
  const bool is_refused = !is_asking && !cancelled_ && refusal_.at != Time{};
  const PendingActions actions = is_refused ? end_refused(earliest_ - clock_.now())
                                            : end(is_asking ? Errc::unknown : harmless);
  stage_ = Stage::overdue;
  return actions;
}

PendingActions WaitCourse::end(std::error_code error) noexcept {
  PendingActions actions = leave_queues();
  stage_ = Stage::done;
  actions.finish = !std::exchange(is_over_, true);
  actions.error = error;
  actions.refuser = last_refuser_;
  return actions;
}

PendingActions WaitCourse::end_refused(Span wait) noexcept {
  refusal_.allowed = false;
  refusal_.retry_after = std::max(Span{1}, wait);
  if (refusal_.at == Time{}) refusal_.at = clock_.now();
  PendingActions actions = end({});
  actions.is_refused = true;
  return actions;
}

PendingActions WaitCourse::begin_refund() noexcept {
  PendingActions actions = leave_queues();
  stage_ = Stage::refunding;
  self_ = shared();
  actions.refund = true;
  return actions;
}

}  // namespace sluice::detail
