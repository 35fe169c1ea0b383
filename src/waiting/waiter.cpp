// The steps of one call that waits. waiter_across_processes.cpp has those that need a ticket.
#include "sluice/detail/waiter.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// A hint that was given without the store may be far too long: the store may be back at any time,
// and is only tried when somebody asks.
constexpr Span longest_degraded_sleep = std::chrono::milliseconds{50};

// A request that is sent at the end of a wait has this long for its answer.
constexpr Span shortest_trip = std::chrono::milliseconds{100};

// So many units of one caller count; those of a long queue still have a sum.
constexpr Word most_units = Word{1} << 32;

}  // namespace

std::shared_ptr<QueueTicket> Waiter::ticket_for(WaitQueues& queues, Store& store, const Key& key) {
  return queues.ticket(store, key);
}

Waiter::Waiter(Terms terms) : terms_(std::move(terms)) {
  terms_.units = std::clamp(terms_.units, Word{0}, most_units);
}

void Waiter::start() noexcept {
  std::shared_ptr<Waiter> victim;
  std::shared_ptr<Waiter> overtaken;  // it may have been the first
  PendingActions actions;
  PendingActions victim_actions;
  try {
    const std::lock_guard lock(terms_.queues->mutex_);
    const WaitQueueOptions& options = terms_.queues->options_;
    arrival_ = terms_.arrival.value_or(new_arrival());
    queue_ = &terms_.queues->queues_[terms_.key];
    queue_->line.set_lower_share(options.lower_share);
    if (!queue_->waiters.empty()) terms_.ticket = queue_->ticket.lock();
    queue_->ticket = terms_.ticket;
    if (queue_->waiters.size() >= options.max_waiters) victim = overflow_victim();
    if (victim.get() == this) {
      actions = end(Errc::too_many_waiters);
    } else {
      overtaken = insert();
      if (victim) victim_actions = victim->end(Errc::too_many_waiters);
      actions = after_insert();
    }
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(terms_.queues->mutex_);
    actions = end(std::make_error_code(std::errc::not_enough_memory));
  }
  if (victim && victim.get() != this) victim->run(victim_actions);
  if (overtaken) overtaken->timer_changed();
  run(actions);
}

Arrival Waiter::new_arrival() const noexcept {
  static std::atomic<std::uint64_t> arrivals{0};
  return {to_word(terms_.clock.now()),
          arrivals.fetch_add(1, std::memory_order_relaxed)};  // the mutex of each queue orders it
}

/// Returns the waiter that was the first, if it is overtaken.
std::shared_ptr<Waiter> Waiter::insert() {
  Waiter* const first = queue_->first();
  queue_->insert(shared_from_this());
  stage_ = Stage::queued;
  return first != nullptr && queue_->first() == this ? first->shared_from_this() : nullptr;
}

/// That it surely takes of the limit of this queue, if it is granted.
Word Waiter::own_units() const noexcept { return terms_.steps > 1 ? 0 : terms_.units; }

Waiter::PendingActions Waiter::after_insert() noexcept {
  // A call that moved here has just been refused until then. A holder may release its lease at any
  // time, and with a ticket more is to be done than to sleep.
  if (is_first() && !terms_.freed_early && terms_.asleep_until > terms_.clock.now()) {
    if (terms_.ticket) {
      ask_at_ = earliest_ = terms_.asleep_until;
    } else {
      stage_ = Stage::sleeping;
      earliest_ = until_ = terms_.asleep_until;
    }
  }
  return {.timer = true};
}

/// How long the waiter waits at least behind the first, which sleeps, and others that surely take
/// `ahead` units. Zero: not known.
Span Waiter::wait_behind(const Waiter& first, Word ahead) const noexcept {
  const Time now = terms_.clock.now();
  const Time grant = std::max(now, first.earliest_);
  // The hint of a decision without the store is none of its grants, and who sleeps for its turn may
  // leave more behind than its grant does.
  if (is_degraded(first.refusal_.source) || grant <= now) return grant - now;
  // The first may leave its units, and move to the queue of another limit.
  const Word left = first.terms_.units - first.own_units();
  return grant - now + time_for(first.terms_.units, std::max<Word>(0, ahead + terms_.units - left));
}

/// The waiter that a full queue gives up. One whose request is at the store stays, since the answer
/// may be a grant.
std::shared_ptr<Waiter> Waiter::overflow_victim() noexcept {
  if (terms_.queues->options_.overflow == Overflow::refuse_newest) return shared_from_this();
  for (const auto& [number, waiter] : queue_->waiters) {
    if (waiter->stage_ != Stage::asking && waiter->stage_ != Stage::entering) return waiter;
  }
  return shared_from_this();
}

bool Waiter::is_first() const noexcept { return queue_->first() == this; }

/// It is the first, and no request is in flight.
bool Waiter::is_next() const noexcept { return queue_->in_flight == 0 && is_first(); }

bool Waiter::shares_flow_with(const Waiter& other) const noexcept {
  const Caller& a = terms_.caller;
  const Caller& b = other.terms_.caller;
  return a.priority == b.priority && a.flow == b.flow;
}

/// Something came back, or the turn did.
void Waiter::wake(bool by_release) noexcept {
  if (by_release) ask_at_ = earliest_ = Time::min();
  if (stage_ != Stage::sleeping) return;
  stage_ = Stage::queued;
  resumes_ = true;
}

/// How long the first waiter still sleeps; zero if it does not, or is this one.
Span Waiter::sleep_of_first() const noexcept {
  const Waiter* const first = queue_->first();
  if (first == nullptr || first == this || first->stage_ != Stage::sleeping) return Span{0};
  const Time now = terms_.clock.now();
  return std::max(now, first->earliest_) - now;
}

/// The waiter need not ask before this instant: the units cannot be there before. A waiter whose
/// deadline comes first asks at once, and the answer is final.
Time Waiter::pause_end(Time now) const noexcept {
  const Time refilled = queue_->last_grant + refill_time(queue_->left);
  return refilled <= terms_.deadline ? std::max(now, refilled) : now;
}

void Waiter::pause(Time now) noexcept {
  queue_->put_back(*this);
  queue_->in_flight_limit = 1;
  stage_ = Stage::sleeping;
  earliest_ = until_ = pause_end(now);
}

void Waiter::on_time() noexcept {
  PendingActions actions;
  {
    const std::lock_guard lock(terms_.queues->mutex_);
    const Time now = terms_.clock.now();
    if (stage_ == Stage::sleeping && now >= until_) {
      stage_ = Stage::queued;
      resumes_ = true;
      until_ = Time::max();
      actions.timer = true;  // it may have been overtaken
    } else if (stage_ == Stage::queued && now >= terms_.deadline) {
      actions = end_refused(sleep_of_first());
    } else if (is_overdue(now)) {
      actions = give_up();
    }
  }
  run(actions);
}

void Waiter::cancel() noexcept {
  PendingActions actions;
  {
    const std::lock_guard lock(terms_.queues->mutex_);
    cancelled_ = true;
    if (stage_ == Stage::queued || stage_ == Stage::sleeping) actions = end(Errc::cancelled);
  }
  run(actions);
}

Time Waiter::timer() const {
  const std::lock_guard lock(terms_.queues->mutex_);
  switch (stage_) {
    case Stage::queued:
      return is_about_to_ask() ? Time::max() : terms_.deadline;
    case Stage::sleeping:
      return until_;
    case Stage::asking:
    case Stage::entering:
      return answer_by_;
    default:
      return Time::max();
  }
}

bool Waiter::is_under_way() const {
  const std::lock_guard lock(terms_.queues->mutex_);
  if (stage_ == Stage::queued) return is_about_to_ask();
  return stage_ == Stage::asking || stage_ == Stage::entering || stage_ == Stage::refunding;
}

/// Its next request follows at once. It must not count as waiting for an instant: a clock that
/// advances whenever all threads wait would advance.
bool Waiter::is_about_to_ask() const noexcept { return resumes_ && is_next(); }

/// Sends the next request, or lets the waiter sleep.
void Waiter::send() noexcept {
  if (moves_before_asking()) return leave_before_asking();
  Next next;
  std::optional<Step> step;
  bool listen = false;
  {
    const std::lock_guard lock(terms_.queues->mutex_);
    next = next_request(step, listen);
  }
  timer_changed();
  if (listen) terms_.ticket->listen(terms_.queues, terms_.key);
  if (next == Next::nothing) return;
  if (next == Next::ask) {
    ask(step ? &*step : nullptr, Completion(&Waiter::answered, this));
  } else {
    terms_.ticket->store().execute(*step, Completion(&Waiter::entered, this));
  }
  handed_over_.fetch_add(1);
}

void Waiter::leave_before_asking() noexcept {
  PendingActions actions;
  {
    const std::lock_guard lock(terms_.queues->mutex_);
    queue_->put_back(*this);
    actions = move_away();
  }
  run(actions);
}

Waiter::Next Waiter::next_request(std::optional<Step>& step, bool& listen) noexcept {
  const Time now = terms_.clock.now();
  const Next next = terms_.ticket ? next_with_ticket(now, step, listen) : Next::ask;
  resumes_ = false;
  if (next == Next::nothing) {
    sleep_with_ticket(now);
    return next;
  }
  if (!terms_.ticket && now < pause_end(now)) {
    pause(now);
    return Next::nothing;
  }
  answer_by_ = answer_by(now);
  ++requests_;
  sent_ = now;
  releases_ = queue_->releases;
  self_ = shared_from_this();
  return next;
}

/// A call that may not wait at all is a try: it has as long for its answer as the store gives it.
Time Waiter::answer_by(Time now) const noexcept {
  const bool is_try = requests_ == 0 && terms_.deadline <= now;
  if (is_try || terms_.deadline > Time::max() - shortest_trip) return Time::max();
  return std::max(terms_.deadline, now + shortest_trip);
}

/// Not while the request is still handed over: the caller may destroy the store once the wait ends.
bool Waiter::is_overdue(Time now) const noexcept {
  return (stage_ == Stage::asking || stage_ == Stage::entering) && now >= answer_by_ &&
         handed_over_.load() == requests_;
}

/// The wait ends without an answer. Entering the wait line charges nothing: the last refusal holds.
Waiter::PendingActions Waiter::give_up() noexcept {
  queue_->put_back(*this);
  const Errc harmless = cancelled_ ? Errc::cancelled : Errc::timed_out;
  const bool is_asking = stage_ == Stage::asking;
  const bool is_refused = !is_asking && !cancelled_ && refusal_.at != Time{};
  const PendingActions actions = is_refused ? end_refused(earliest_ - terms_.clock.now())
                                            : end(is_asking ? Errc::unknown : harmless);
  stage_ = Stage::overdue;
  return actions;
}

void Waiter::answered(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  Outcome own = outcome;
  if (waiter.terms_.ticket && !outcome.error) own = waiter.without_turn(outcome);
  Decision decision;
  std::error_code error = outcome.error;
  try {
    if (!error) decision = waiter.read(own);
  } catch (const std::bad_alloc&) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  PendingActions actions;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(waiter.terms_.queues->mutex_);
    alive = std::move(waiter.self_);
    waiter.answer_by_ = Time::max();
    if (waiter.stage_ == Stage::overdue) {
      if (!error && decision.allowed) actions = waiter.begin_refund();
    } else {
      if (!error && decision.allowed) {
        waiter.queue_->grant(waiter);
      } else {
        waiter.queue_->put_back(waiter);
      }
      if (waiter.terms_.ticket && !error) waiter.note_turn(outcome);
      if (error && outcome.decision.step < waiter.terms_.steps) waiter.refusal_ = outcome.decision;
      actions = waiter.take_answer(error, decision);
    }
  }
  waiter.run(actions);
}

/// After a grant more requests may be in flight, but no more than what remains.
void Waiter::note_grant(const Decision& decision) noexcept {
  const auto remaining =
      static_cast<std::size_t>(std::clamp<Word>(decision.remaining, 1, word_limit));
  queue_->in_flight_limit =
      std::min({2 * queue_->in_flight_limit, WaitQueue::max_in_flight, remaining});
  queue_->last_grant = terms_.clock.now();
  // What is decided in the place of the store says nothing of what the limit has left.
  queue_->left = is_degraded(decision.source) ? Decision{} : left();
}

Waiter::PendingActions Waiter::take_answer(std::error_code error,
                                           const Decision& decision) noexcept {
  if (error) {
    const bool harmless = cancelled_ && error == Failure::not_executed;
    return end(harmless ? make_error_code(Errc::cancelled) : error);
  }
  if (!decision.allowed) return cancelled_ ? end(Errc::cancelled) : refuse(decision);
  note_grant(decision);
  const Word wake = terms_.ticket ? pass_ticket_on() : 0;
  return cancelled_ ? begin_refund(wake) : end({}, wake);
}

/// After a refusal: asks again later, or ends.
Waiter::PendingActions Waiter::refuse(const Decision& decision) noexcept {
  const Time now = terms_.clock.now();
  const Span hint = std::max(Span{1}, decision.retry_after);
  refusal_ = decision;
  if (terms_.ticket) {
    queue_->in_flight_limit = 1;
    return refuse_with_ticket(hint, now);
  }
  const Span left = terms_.deadline - now;
  if (left <= Span{0} || (!may_be_freed_early() && hint > left)) return end_refused(hint);
  queue_->in_flight_limit = 1;
  if (moves_after_refusal(now + degraded_sleep(hint))) return move_away();
  if (!is_first() || queue_->releases != releases_) {  // ... perhaps after the store's refusal
    stage_ = Stage::queued;
    return {.timer = true};
  }
  stage_ = Stage::sleeping;
  earliest_ = now + hint;
  until_ = now + sleep_after(hint);
  if (terms_.freed_early) until_ = std::min(until_, terms_.deadline);
  return {.timer = true};
}

/// How long a refused waiter sleeps whose hint is this.
Span Waiter::sleep_after(Span hint) const noexcept {
  if (terms_.freed_early) hint = std::min(hint, terms_.queues->options_.recheck);
  return degraded_sleep(hint);
}

Span Waiter::degraded_sleep(Span hint) const noexcept {
  return refusal_.source == Source::fallback ? std::min(hint, longest_degraded_sleep) : hint;
}

Waiter::PendingActions Waiter::end(std::error_code error, Word wake) noexcept {
  const Word leave = leave_queue();
  stage_ = Stage::done;
  const bool was_over = std::exchange(is_over_, true);
  return {.finish = !was_over, .leave = leave, .wake = wake, .error = error};
}

Waiter::PendingActions Waiter::end_refused(Span wait) noexcept {
  refusal_.allowed = false;
  refusal_.retry_after = std::max(Span{1}, wait);
  if (refusal_.at == Time{}) refusal_.at = terms_.clock.now();
  return end({});
}

Waiter::PendingActions Waiter::move_away() noexcept {
  const Word leave = leave_queue();
  stage_ = Stage::done;
  return {.move = true, .leave = leave};
}

Waiter::PendingActions Waiter::begin_refund(Word wake) noexcept {
  const Word leave = leave_queue();
  stage_ = Stage::refunding;
  self_ = shared_from_this();
  return {.refund = true, .leave = leave, .wake = wake};
}

/// Returns the arrival of the ticket if the wait line must be left, since nobody here waits any
/// more; else 0.
Word Waiter::leave_queue() noexcept {
  if (queue_ == nullptr) return 0;
  queue_->erase(*this);
  const bool is_last = terms_.ticket && queue_->waiters.empty();
  queue_ = nullptr;
  return is_last && std::exchange(terms_.ticket->is_entered, false) ? terms_.ticket->stored_arrival
                                                                    : 0;
}

void Waiter::refunded(void* self, const Outcome&) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  PendingActions actions;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(waiter.terms_.queues->mutex_);
    alive = std::move(waiter.self_);
    actions = waiter.end(waiter.cancelled_ ? Errc::cancelled : Errc::too_many_waiters);
  }
  waiter.terms_.queues->wake_first(waiter.terms_.key);
  waiter.run(actions);
}

void Waiter::run(const PendingActions& actions) noexcept {
  const std::shared_ptr<Waiter> alive = shared_from_this();
  if (actions.refund) refund(Completion(&Waiter::refunded, this));
  // Before finished(), after which the caller may destroy the store.
  if (actions.leave != 0) terms_.ticket->leave(actions.leave);
  if (actions.finish) finished(actions.error);
  if (actions.move) moved();
  terms_.queues->pump(terms_.key);
  if (actions.timer) timer_changed();
  if (actions.wake != 0) terms_.ticket->wake(actions.wake);
}

}  // namespace sluice::detail
