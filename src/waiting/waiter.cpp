// The steps of one call that waits. waiter_across_processes.cpp has those that need a ticket.
#include "sluice/detail/waiter.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "sluice/limiters/waitable.hpp"
#include "src/util/uninitialized_array.hpp"
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

/// What a process has prefetched comes back earlier than the limit refills.
Decision unless_prefetched(const Decision& left) noexcept {
  return left.source == Source::prefetched ? Decision{} : left;
}

}  // namespace

Waiter::Waiter(ClaimedLimits limits, const Deadline& deadline, Caller caller,
               const std::optional<Arrival>& arrival)
    : limits_(std::move(limits)),
      store_(limits_.front()->store()),
      clock_(limits_.front()->store().clock()),
      deadline_(deadline.on(clock_)),
      caller_(std::move(caller)),
      mutex_(limits_.front()->queues()->mutex()),
      given_arrival_(arrival) {
  places_.reserve(limits_.size());
  for (const auto& limit : limits_) {
    places_.push_back({.queues = limit->queues(),
                       .key = queue_key(limit->key()),
                       .units = std::clamp(limit->units(), Word{0}, most_units),
                       .freed_early = limit->freed_early()});
  }
}

std::system_error Waiter::failed(const CallName& call, const std::error_code& error) const {
  if (limits_.size() == 1) return limits_.front()->failed(call, error);
  UninitializedArray<Step, Plan::max_steps> steps;
  std::size_t count = 0;
  for (const auto& limit : limits_) {
    steps.make(count++, [&] { return limit->step(); });
  }
  return failed_call(call, error, std::span<const Step>(steps.data(), count), refusal_.step);
}

std::shared_ptr<const std::string> Waiter::reason_for(const std::error_code& error) const noexcept {
  return store_.is_over() ? nullptr : reason_of(store_.get(), error);
}

std::unique_ptr<ClaimedLimit> Waiter::take_claim() {
  if (!granted_.allowed) limits_.front()->answered(Outcome{{}, refusal_, {}, {}}, sent_);
  return std::move(limits_.front());
}

void Waiter::start() noexcept {
  PendingActions actions;
  {
    const std::lock_guard lock(mutex_);
    arrival_ = given_arrival_.value_or(new_arrival());
    try {
      take_places();
      actions = join(Time{}, Span{0});
    } catch (const std::bad_alloc&) {
      actions = end(std::make_error_code(std::errc::not_enough_memory));
    }
  }
  run(actions);
}

Arrival Waiter::new_arrival() const noexcept {
  static std::atomic<std::uint64_t> arrivals{0};
  return {to_word(clock_.now()),
          arrivals.fetch_add(1, std::memory_order_relaxed)};  // a mutex orders those of one queue
}

/// Keeps the queues of its limits while it waits.
void Waiter::take_places() {
  for (Place& place : places_) {
    WaitQueue& queue = place.queues->queues_[place.key];
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

/// The first who waits decides whether the queue has a ticket.
void Waiter::take_ticket() {
  WaitQueue& queue = *home().queue;
  if (queue.homes > 0) {
    ticket_ = queue.ticket.lock();
    return;
  }
  const ClaimedLimit& limit = *limits_[home_];
  ticket_ = store_.is_over() || limit.asks_by_itself()
                ? nullptr
                : home().queues->ticket(store_.get(), limit.key(), home().key);
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
  until_ = now + sleep_after(hint);
  if (home().freed_early) until_ = std::min(until_, deadline_);
}

/// That it surely takes of the limit of this queue, if it is granted.
Word Waiter::own_units() const noexcept { return limits_.size() > 1 ? 0 : home().units; }

Span Waiter::refill_time(const Decision& left) const noexcept {
  return limits_[home_]->refill_time(left);
}

Span Waiter::time_for(Word first, Word further) const noexcept {
  return limits_[home_]->time_for(first, further);
}

/// Whether something came back to one of its limits, or a turn did, since it asked.
bool Waiter::was_woken() const noexcept {
  return std::any_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.wakes != place.queue->wakes; });
}

bool Waiter::is_home_released() const noexcept { return home().releases != home().queue->releases; }

/// It asks now.
void Waiter::note_wakes() noexcept {
  moves_ = 0;
  for (Place& place : places_) {
    place.refused_until = {};
    place.wakes = place.queue->wakes;
    place.releases = place.queue->releases;
  }
}

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
    if (waiter->stage_ != Stage::asking && waiter->stage_ != Stage::entering) return waiter;
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

/// Something came back, or the turn did.
void Waiter::wake(bool by_release) noexcept {
  if (by_release) {
    ask_at_ = earliest_ = Time::min();
    home().releases = home().queue->releases;
  }
  if (stage_ != Stage::sleeping) return;
  stage_ = Stage::queued;
  resumes_ = true;
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

void Waiter::pause(Time now) noexcept {
  home().queue->put_back(*this);
  home().queue->in_flight_limit = 1;
  stage_ = Stage::sleeping;
  earliest_ = until_ = pause_end(now);
}

void Waiter::on_time() noexcept {
  PendingActions actions;
  {
    const std::lock_guard lock(mutex_);
    const Time now = clock_.now();
    if (stage_ == Stage::sleeping && now >= until_) {
      stage_ = Stage::queued;
      resumes_ = true;
      moves_ = 0;
      until_ = Time::max();
      actions.timer = true;  // it may have been overtaken
    } else if (stage_ == Stage::sleeping) {
      actions.timer = true;
    } else if (stage_ == Stage::queued && now >= deadline_) {
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
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (stage_ == Stage::queued || stage_ == Stage::sleeping) actions = end(Errc::cancelled);
  }
  run(actions);
}

Time Waiter::timer() const {
  const std::lock_guard lock(mutex_);
  switch (stage_) {
    case Stage::queued:
      return is_about_to_ask() ? Time::max() : deadline_;
    case Stage::sleeping:
      return std::min(until_, next_lapse());
    case Stage::asking:
    case Stage::entering:
      return answer_by_;
    default:
      return Time::max();
  }
}

bool Waiter::is_under_way() const {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::queued) return is_about_to_ask();
  return stage_ == Stage::asking || stage_ == Stage::entering || stage_ == Stage::refunding;
}

/// Its next request follows at once. It must not count as waiting for an instant: a clock that
/// advances whenever all threads wait would advance.
bool Waiter::is_about_to_ask() const noexcept { return resumes_ && is_next(); }

/// Sends the next request, or lets the waiter sleep.
void Waiter::send() noexcept {
  Next next = Next::nothing;
  std::optional<Step> step;
  bool listen = false;
  std::optional<PendingActions> moved;
  {
    const std::lock_guard lock(mutex_);
    moved = move_before_asking();
    if (!moved) next = next_request(step, listen);
  }
  if (moved) return run(*moved);
  timer_changed();
  if (listen) ticket_->listen(home().queues, home().key);
  if (next == Next::nothing) return;
  if (next == Next::ask) {
    ask(step ? &*step : nullptr, Completion(&Waiter::answered, this));
  } else {
    ticket_->store().execute(*step, Completion(&Waiter::entered, this));
  }
  handed_over_.fetch_add(1);
}

void Waiter::ask(const Step* turn, Completion done) noexcept {
  if (store_.is_over()) return done.fail(Errc::shut_down);
  if (limits_.front()->asks_by_itself()) return limits_.front()->ask(std::move(done));
  UninitializedArray<Step, Plan::max_steps + 1> steps;
  std::size_t count = 0;
  for (const auto& limit : limits_) {
    steps.make(count++, [&] { return limit->step(); });
  }
  if (turn != nullptr) steps.make(count++, [&] { return *turn; });
  store_.execute(std::span<const Step>(steps.data(), count), std::move(done));
}

/// Keeps the answer, and returns its decision. May throw std::bad_alloc.
Decision Waiter::read(const Outcome& outcome) {
  granted_ = {};
  refused_by_ = home_;
  if (outcome.decision.allowed) {
    read_grant(outcome);
    granted_ = outcome.decision;
    return outcome.decision;
  }
  if (limits_.size() == 1) return outcome.decision;
  const Decision& refusal = decisive(outcome);
  const bool is_others_turn =
      refusal.step < outcome.steps.size() && outcome.steps[refusal.step].allowed;
  if (!is_others_turn) refused_by_ = refusal.step;
  return refusal;
}

void Waiter::read_grant(const Outcome& outcome) {
  if (limits_.size() == 1) return limits_.front()->answered(outcome, sent_);
  auto output = outcome.output;
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const Step step = limits_[i]->step();
    const std::size_t words = output_count(*step.operation, step.table.size());
    Outcome own{{}, outcome.decision, {}, output.first(std::min(words, output.size()))};
    if (i < outcome.steps.size()) {
      own.decision = outcome.steps[i];
      own.steps = outcome.steps.subspan(i, 1);
    }
    output = output.subspan(own.output.size());
    limits_[i]->answered(own, sent_);
  }
}

/// The refusal that says when to ask again: the longest wait, unless a shorter one already passes
/// the deadline and cannot become shorter.
const Decision& Waiter::decisive(const Outcome& outcome) const noexcept {
  const Span left = deadline_ - clock_.now();
  const Decision* firm = nullptr;
  for (const Decision& step : outcome.steps) {
    const bool is_firm = !step.allowed && !places_[step.step].freed_early;
    if (is_firm && (firm == nullptr || step.retry_after > firm->retry_after)) firm = &step;
  }
  return firm != nullptr && firm->retry_after > left ? *firm : outcome.decision;
}

Waiter::Next Waiter::next_request(std::optional<Step>& step, bool& listen) noexcept {
  const Time now = clock_.now();
  const Next next = ticket_ ? next_with_ticket(now, step, listen) : Next::ask;
  resumes_ = false;
  if (next == Next::nothing) {
    sleep_with_ticket(now);
    return next;
  }
  if (!ticket_ && now < pause_end(now)) {
    pause(now);
    return Next::nothing;
  }
  answer_by_ = answer_by(now);
  ++requests_;
  sent_ = now;
  if (next == Next::ask) note_wakes();
  self_ = shared_from_this();
  return next;
}

/// A call that may not wait at all is a try: it has as long for its answer as the store gives it.
Time Waiter::answer_by(Time now) const noexcept {
  const bool is_try = requests_ == 0 && deadline_ <= now;
  if (is_try || deadline_ > Time::max() - shortest_trip) return Time::max();
  return std::max(deadline_, now + shortest_trip);
}

/// Not while the request is still handed over: the caller may destroy the store once the wait ends.
bool Waiter::is_overdue(Time now) const noexcept {
  return (stage_ == Stage::asking || stage_ == Stage::entering) && now >= answer_by_ &&
         handed_over_.load() == requests_;
}

/// The wait ends without an answer. Entering the wait line charges nothing: the last refusal holds.
Waiter::PendingActions Waiter::give_up() noexcept {
  home().queue->put_back(*this);
  const Errc harmless = cancelled_ ? Errc::cancelled : Errc::timed_out;
  const bool is_asking = stage_ == Stage::asking;
  const bool is_refused = !is_asking && !cancelled_ && refusal_.at != Time{};
  const PendingActions actions = is_refused ? end_refused(earliest_ - clock_.now())
                                            : end(is_asking ? Errc::unknown : harmless);
  stage_ = Stage::overdue;
  return actions;
}

void Waiter::answered(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  Outcome own = outcome;
  if (waiter.ticket_ && !outcome.error) own = waiter.without_turn(outcome);
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
    const std::lock_guard lock(waiter.mutex_);
    alive = std::move(waiter.self_);
    waiter.answer_by_ = Time::max();
    if (waiter.stage_ == Stage::overdue) {
      if (!error && decision.allowed) actions = waiter.begin_refund();
    } else {
      if (!error && decision.allowed) {
        waiter.home().queue->grant(waiter);
      } else {
        waiter.home().queue->put_back(waiter);
      }
      if (waiter.ticket_ && !error) waiter.note_turn(outcome);
      if (error && outcome.decision.step < waiter.limits_.size())
        waiter.refusal_ = outcome.decision;
      actions = waiter.take_answer(error, decision);
    }
  }
  waiter.run(actions);
}

/// After a grant more requests may be in flight, but no more than what remains.
void Waiter::note_grant(const Decision& decision) noexcept {
  const auto remaining =
      static_cast<std::size_t>(std::clamp<Word>(decision.remaining, 1, word_limit));
  home().queue->in_flight_limit =
      std::min({2 * home().queue->in_flight_limit, WaitQueue::max_in_flight, remaining});
  for (std::size_t i = 0; i < places_.size(); ++i) {
    WaitQueue& queue = *places_[i].queue;
    queue.last_grant = clock_.now();
    // What is decided in the place of the store says nothing of what the limit has left.
    const Decision& left = limits_[i]->decision();
    queue.left = is_degraded(decision.source) ? Decision{} : unless_prefetched(left);
  }
}

Waiter::PendingActions Waiter::take_answer(std::error_code error,
                                           const Decision& decision) noexcept {
  if (error) {
    const bool harmless = cancelled_ && error == Failure::not_executed;
    return end(harmless ? make_error_code(Errc::cancelled) : error);
  }
  if (!decision.allowed) return cancelled_ ? end(Errc::cancelled) : refuse(decision);
  note_grant(decision);
  const Word wake = ticket_ ? pass_ticket_on() : 0;
  return cancelled_ ? begin_refund(wake) : end({}, wake);
}

/// After a refusal: asks again later, or ends.
Waiter::PendingActions Waiter::refuse(const Decision& decision) noexcept {
  const Time now = clock_.now();
  const Span hint = std::max(Span{1}, decision.retry_after);
  refusal_ = decision;
  refused_by_ = place_at(refused_by_);
  if (ticket_) {
    home().queue->in_flight_limit = 1;
    return refuse_with_ticket(hint, now);
  }
  if (has_failed(hint, now)) return end_refused(hint);
  home().queue->in_flight_limit = 1;
  note_refusal(now, hint);
  if (refused_by_ != home_) return move_to(refused_by_, sent_, now + degraded_sleep(hint), hint);
  if (!is_first()) {
    stage_ = Stage::queued;
    return {.timer = true};
  }
  stage_ = Stage::sleeping;
  earliest_ = now + hint;
  until_ = now + sleep_after(hint);
  if (home().freed_early) until_ = std::min(until_, deadline_);
  return {.timer = true};
}

void Waiter::note_refusal(Time now, Span hint) noexcept {
  Place& place = places_[refused_by_];
  if (place.freed_early) hint = std::min(hint, place.queues->options_.recheck);
  place.refused_until = now + degraded_sleep(hint);
}

/// No grant is possible by the deadline.
bool Waiter::has_failed(Span hint, Time now) const noexcept {
  const Span left = deadline_ - now;
  return left <= Span{0} || (!places_[refused_by_].freed_early && hint > left);
}

/// How long a refused waiter sleeps whose hint is this.
Span Waiter::sleep_after(Span hint) const noexcept {
  if (home().freed_early) hint = std::min(hint, home().queues->options_.recheck);
  return degraded_sleep(hint);
}

Span Waiter::degraded_sleep(Span hint) const noexcept {
  return refusal_.source == Source::fallback ? std::min(hint, longest_degraded_sleep) : hint;
}

Waiter::PendingActions Waiter::end(std::error_code error, Word wake) noexcept {
  PendingActions actions = leave_queues();
  stage_ = Stage::done;
  actions.finish = !std::exchange(is_over_, true);
  actions.wake = wake;
  actions.error = error;
  return actions;
}

Waiter::PendingActions Waiter::end_refused(Span wait) noexcept {
  refusal_.allowed = false;
  refusal_.retry_after = std::max(Span{1}, wait);
  if (refusal_.at == Time{}) refusal_.at = clock_.now();
  return end({});
}

Waiter::PendingActions Waiter::begin_refund(Word wake) noexcept {
  PendingActions actions = leave_queues();
  stage_ = Stage::refunding;
  self_ = shared_from_this();
  actions.refund = true;
  actions.wake = wake;
  return actions;
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
  return claimed_of(*places_[limit].queue).value_or(limit);
}

/// The place in this queue.
std::optional<std::size_t> Waiter::claimed_of(const WaitQueue& queue) const noexcept {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].queue == &queue) return i;
  }
  return std::nullopt;
}

/// It is its turn at its home.
bool Waiter::is_at_its_turn() const noexcept {
  return stage_ == Stage::asking || stage_ == Stage::entering || is_first();
}

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

void Waiter::refunded(void* self, const Outcome&) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  PendingActions actions;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(waiter.mutex_);
    alive = std::move(waiter.self_);
    actions = waiter.end(waiter.cancelled_ ? Errc::cancelled : Errc::too_many_waiters);
  }
  waiter.run(actions);
}

void Waiter::run(const PendingActions& actions) noexcept {
  const std::shared_ptr<Waiter> alive = shared_from_this();
  if (actions.refund) {
    Completion done(&Waiter::refunded, this);
    store_.is_over() ? done.fail(Errc::shut_down) : refund_all(limits_, std::move(done));
  }
  // Before finished(), after which the caller may destroy the store.
  if (actions.leave != 0) actions.ticket->leave(actions.leave);
  if (actions.finish) finished(actions.error);
  if (const auto& dropped = actions.dropped) {
    dropped->run({.finish = true,
                  .leave = actions.dropped_leaves,
                  .ticket = dropped->ticket_,
                  .error = Errc::too_many_waiters});
  }
  for (const Place& place : places_) place.queues->pump(place.key);
  if (const auto& overtaken = actions.overtaken) {
    for (const Place& place : overtaken->places_) place.queues->pump(place.key);
    overtaken->timer_changed();
  }
  if (actions.timer) timer_changed();
  if (actions.wake != 0) actions.ticket->wake(actions.wake);
}

}  // namespace sluice::detail
