// The steps of one call that waits.
#include <algorithm>
#include <utility>

#include "sluice/detail/wait_queues.hpp"

namespace sluice::detail {
namespace {

// A store that is away may be back long before the time that was told without it, and is only asked
// when somebody asks.
constexpr Span longest_rest_alone = std::chrono::milliseconds{50};

}  // namespace

void Waiter::start() noexcept {
  std::shared_ptr<Waiter> dropped;
  std::shared_ptr<Waiter> passed;  // it may have been the first
  PendingActions turn;
  PendingActions dropped_turn;
  try {
    const std::lock_guard lock(terms_.lines->mutex_);
    const WaitQueueOptions& options = terms_.lines->options_;
    arrival_ = terms_.lines->arrivals_++;
    const Time now = terms_.clock.now();
    rank_ = to_word(now) - terms_.priority * options.aging.count();
    line_ = &terms_.lines->lines_[terms_.key];
    if (const auto place = line_->place.lock(); place && terms_.place) terms_.place = place;
    line_->place = terms_.place;
    if (line_->queue.size() + line_->reserved.size() >= options.most) dropped = victim();
    if (dropped.get() == this) {
      turn = end(Errc::too_many_waiters);
    } else {
      const auto place = line_->queue.insert(shared_from_this()).first;
      if (std::next(place) != line_->queue.end()) passed = *std::next(place);
      stage_ = Stage::queued;
      turn.timer = true;
      if (dropped) {
        dropped_turn = dropped->stage_ == Stage::reserved ? dropped->take_back()
                                                          : dropped->end(Errc::too_many_waiters);
      }
      const Span rest = rest_before();
      const bool too_late = rest > Span{0} && rest > terms_.deadline - now;
      if (!terms_.freed_early && too_late) turn = end_refused(rest);
    }
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(terms_.lines->mutex_);
    turn = end(std::make_error_code(std::errc::not_enough_memory));
  }
  if (dropped && dropped.get() != this) dropped->run(dropped_turn);
  if (passed) passed->timer_changed();
  run(turn);
}

/// Who goes when there are too many. Who asks at this moment stays: the answer may be a grant.
std::shared_ptr<Waiter> Waiter::victim() noexcept {
  if (terms_.lines->options_.overflow == Overflow::refuse_newest) return shared_from_this();
  std::shared_ptr<Waiter> oldest;
  for (const WaitQueues::Set* const set : {&line_->queue, &line_->reserved}) {
    for (const std::shared_ptr<Waiter>& waiter : *set) {
      if (waiter->stage_ == Stage::asking || waiter->stage_ == Stage::entering) continue;
      if (!oldest || waiter->arrival_ < oldest->arrival_) oldest = waiter;
    }
  }
  return oldest ? oldest : shared_from_this();
}

/// How long the first in line rests yet, if it stands before this one.
Span Waiter::rest_before() const noexcept {
  const Waiter& first = **line_->queue.begin();
  if (&first == this || first.stage_ != Stage::resting) return Span{0};
  const Time now = terms_.clock.now();
  const Time until = first.terms_.place ? first.ask_at_ : first.earliest_;
  return std::max(now, until) - now;
}

/// How far ahead a grant may lie.
Span Waiter::horizon() const noexcept {
  return std::min(terms_.reach, terms_.lines->options_.horizon);
}

/// What is reserved for a time so close calls for more, or it would be over before the answer.
Span Waiter::near() const noexcept { return horizon() / 4; }

/// Before, it need not ask: enough is reserved. Who may have to wait for no longer than can be
/// reserved is answered at once, for good.
Time Waiter::pause_end(Time now) const noexcept {
  if (horizon() == Span{0} || terms_.deadline - now <= horizon()) return now;
  return std::max(now, line_->last - near());
}

void Waiter::pause(Time now) noexcept {
  --line_->asking;
  line_->at_once = 1;
  stage_ = Stage::resting;
  earliest_ = line_->last;
  until_ = std::min(pause_end(now), terms_.deadline);
}

void Waiter::on_time() noexcept {
  PendingActions turn;
  {
    const std::lock_guard lock(terms_.lines->mutex_);
    const Time now = terms_.clock.now();
    if (stage_ == Stage::reserved && now >= until_) {
      turn = end({});
    } else if (stage_ == Stage::resting && now >= until_) {
      stage_ = Stage::queued;
      goes_on_ = true;
      until_ = Time::max();
    } else if (stage_ == Stage::queued && now >= terms_.deadline) {
      turn = end_refused(rest_before());
    }
  }
  run(turn);
}

void Waiter::cancel() noexcept {
  PendingActions turn;
  {
    const std::lock_guard lock(terms_.lines->mutex_);
    cancelled_ = true;
    if (stage_ == Stage::queued || stage_ == Stage::resting) {
      turn = end(Errc::cancelled);
    } else if (stage_ == Stage::reserved) {
      turn = take_back();
    }
  }
  run(turn);
}

Time Waiter::timer() const {
  const std::lock_guard lock(terms_.lines->mutex_);
  switch (stage_) {
    case Stage::queued:
      return is_about_to_ask() ? Time::max() : terms_.deadline;
    case Stage::resting:
    case Stage::reserved:
      return until_;
    default:
      return Time::max();
  }
}

bool Waiter::is_under_way() const {
  const std::lock_guard lock(terms_.lines->mutex_);
  if (stage_ == Stage::queued) return is_about_to_ask();
  return stage_ == Stage::asking || stage_ == Stage::entering || stage_ == Stage::returning;
}

void Waiter::send() noexcept {
  Next next = Next::ask;
  Span max_wait{0};
  std::optional<Step> step;
  bool listen = false;
  {
    const std::lock_guard lock(terms_.lines->mutex_);
    const Time now = terms_.clock.now();
    if (terms_.place) next = choose(now, step, listen);
    const bool pauses = !terms_.place && now < pause_end(now);
    goes_on_ = false;
    if (pauses) {
      next = Next::nothing;
      pause(now);
    } else if (next == Next::nothing) {
      rest(now);
    } else {
      const Span left = std::max(Span{0}, terms_.deadline - now);
      max_wait = std::min(left, horizon());
      asked_for_ = max_wait;
      sent_ = now;
      freed_ = line_->freed;
      self_ = shared_from_this();
    }
  }
  timer_changed();
  if (listen) terms_.place->listen(terms_.lines, terms_.key);
  if (next == Next::ask) {
    ask(max_wait, step ? &*step : nullptr, Completion(&Waiter::answered, this));
  } else if (next == Next::enter) {
    terms_.place->store().execute(*step, Completion(&Waiter::entered, this));
  }
}

void Waiter::answered(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  Outcome own = outcome;
  if (waiter.terms_.place && !outcome.error) own = without_turn(outcome);
  Decision decision;
  std::error_code error = outcome.error;
  try {
    if (!error) decision = waiter.read(own);
  } catch (const std::bad_alloc&) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  PendingActions turn;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(waiter.terms_.lines->mutex_);
    alive = std::move(waiter.self_);
    --waiter.line_->asking;
    if (waiter.terms_.place && !error) waiter.learn(outcome);
    if (error && outcome.decision.step == 0) waiter.refusal_ = outcome.decision;
    turn = waiter.settle(error, decision);
  }
  waiter.run(turn);
}

/// More may ask at once from now on; where nothing can be reserved, no more than there is left.
void Waiter::learn_room(const Decision& decision) noexcept {
  std::size_t room = WaitQueues::most_asking;
  if (horizon() == Span{0}) {
    room = static_cast<std::size_t>(std::clamp<Word>(decision.remaining, 1, word_limit));
  }
  line_->at_once = std::min({2 * line_->at_once, WaitQueues::most_asking, room});
  line_->last = terms_.clock.now() + decision.retry_after;
}

Waiter::PendingActions Waiter::settle(std::error_code error, const Decision& decision) noexcept {
  if (error) {
    const bool harmless = cancelled_ && error == Failure::not_executed;
    return end(harmless ? make_error_code(Errc::cancelled) : error);
  }
  if (!decision.allowed) return cancelled_ ? end(Errc::cancelled) : refuse(decision);
  learn_room(decision);
  const Word wake = terms_.place ? pass_on(decision) : 0;
  if (cancelled_) return take_back(wake);
  if (decision.retry_after <= Span{0}) return end({}, wake);
  // Counted from now, and not from the store's instant: never before the grant's time.
  until_ = terms_.clock.now() + decision.retry_after;
  stage_ = Stage::reserved;
  line_->reserved.insert(line_->queue.extract(shared_from_this()));
  return {.timer = true};
}

/// To be asked again in time, or over.
Waiter::PendingActions Waiter::refuse(const Decision& decision) noexcept {
  const Time now = terms_.clock.now();
  const Span hint = std::max(Span{1}, decision.retry_after);
  refusal_ = decision;
  if (terms_.place) {
    line_->at_once = 1;
    return refuse_in_place(hint, now);
  }
  const Span left = terms_.deadline - now;
  // A rule has looked as far ahead as it was asked to; without its store nobody looks ahead.
  const Span looked = is_degraded(decision.source) ? Span{0} : asked_for_;
  if (left <= Span{0} || (!terms_.freed_early && hint + looked > left)) {
    return end_refused(hint + looked);
  }
  line_->at_once = 1;
  if (line_->queue.begin()->get() != this) {
    stage_ = Stage::queued;  // asks again when it is the first
    return {.timer = true};
  }
  if (terms_.freed_early &&
      line_->freed != freed_) {  // perhaps just after the store has refused it
    stage_ = Stage::queued;
    return {.timer = true};
  }
  stage_ = Stage::resting;
  earliest_ = now + hint + looked;
  until_ = now + rest_after(hint + looked - std::min(looked, near()));
  if (terms_.freed_early) until_ = std::min(until_, terms_.deadline);
  return {.timer = true};
}

/// For how long who was refused does not ask, if it need not for `rest`.
Span Waiter::rest_after(Span rest) const noexcept {
  if (terms_.freed_early) rest = std::min(rest, terms_.lines->options_.recheck);
  return refusal_.source == Source::fallback ? std::min(rest, longest_rest_alone) : rest;
}

/// It is over: the caller runs finished().
Waiter::PendingActions Waiter::end(std::error_code error, Word wake) noexcept {
  const Word last = leave();
  stage_ = Stage::done;
  return {.finish = true, .leave = last, .wake = wake, .error = error};
}

Waiter::PendingActions Waiter::end_refused(Span wait) noexcept {
  refusal_.allowed = false;
  refusal_.retry_after = std::max(Span{1}, wait);
  if (refusal_.at == Time{}) refusal_.at = terms_.clock.now();
  return end({});
}

Waiter::PendingActions Waiter::take_back(Word wake) noexcept {
  line_->last = Time{};  // the line has less than it had
  const Word last = leave();
  stage_ = Stage::returning;
  self_ = shared_from_this();
  return {.refund = true, .leave = last, .wake = wake};
}

/// Since when the place in the line across processes is held that is nobody's now; else 0.
Word Waiter::leave() noexcept {
  if (line_ == nullptr) return 0;
  const auto self = shared_from_this();
  line_->queue.erase(self);
  line_->reserved.erase(self);
  const bool last = terms_.place && line_->queue.empty();
  line_ = nullptr;
  return last && std::exchange(terms_.place->entered, false) ? terms_.place->since : 0;
}

void Waiter::returned(void* self, const Outcome&) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  PendingActions turn;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(waiter.terms_.lines->mutex_);
    alive = std::move(waiter.self_);
    turn = waiter.end(waiter.cancelled_ ? Errc::cancelled : Errc::too_many_waiters);
  }
  waiter.terms_.lines->shorten(waiter.terms_.key);
  waiter.run(turn);
}

void Waiter::run(const PendingActions& turn) noexcept {
  const std::shared_ptr<Waiter> alive = shared_from_this();
  if (turn.refund) refund(Completion(&Waiter::returned, this));
  // First: who has finished may destroy the store.
  if (turn.leave != 0) terms_.place->leave(turn.leave);
  if (turn.finish) finished(turn.error);
  terms_.lines->pump(terms_.key);
  if (turn.timer) timer_changed();
  if (turn.wake != 0) terms_.place->wake(turn.wake);
}

}  // namespace sluice::detail
