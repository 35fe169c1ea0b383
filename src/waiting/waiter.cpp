// How one call that waits begins, sleeps and ends. waiter_places.cpp has its places in queues,
// waiter_requests.cpp what it asks, waiter_across_processes.cpp what needs a ticket.
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

// So many units of one caller count; those of a long queue still have a sum.
constexpr Word most_units = Word{1} << 32;

}  // namespace

Waiter::Waiter(ClaimedLimits limits, const Deadline& deadline, Caller caller,
               const std::optional<Arrival>& arrival)
    : limits_(std::move(limits)),
      store_(limits_.front()->store()),
      clock_(limits_.front()->store().clock()),
      is_shared_(!limits_.front()->store().stamps_by_clock()),
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
    plan_size_ += limit->step_count();
  }
  asked_.reserve(plan_size_ + 1);
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

Span Waiter::refill_time(const Decision& left) const noexcept {
  return limits_[home_]->refill_time(left);
}

Span Waiter::time_for(Word first, Word further) const noexcept {
  return limits_[home_]->time_for(first, further);
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

void Waiter::pause(Time now) noexcept {
  home().queue->put_back(*this);
  home().queue->in_flight_limit = 1;
  stage_ = Stage::sleeping;
  earliest_ = pause_end(now);
  until_ = std::min(earliest_, recheck_at());
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
    case Stage::preparing:
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
  return is_at_store() || stage_ == Stage::refunding;
}

/// Its next request follows at once. It must not count as waiting for an instant: a clock that
/// advances whenever all threads wait would advance.
bool Waiter::is_about_to_ask() const noexcept { return resumes_ && is_next(); }

/// The wait ends without an answer. Only asking may have charged something: otherwise the last
/// refusal holds.
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

Waiter::PendingActions Waiter::take_answer(std::error_code error,
                                           const Decision& decision) noexcept {
  if (error) {
    const bool harmless = cancelled_ && error == Failure::not_executed;
    return end(harmless ? make_error_code(Errc::cancelled) : error);
  }
  if (!decision.allowed) return cancelled_ ? end(Errc::cancelled) : refuse(decision);
  note_grant(decision);
  const NextProcess wake = ticket_ ? pass_ticket_on() : NextProcess{};
  return cancelled_ ? begin_refund(wake) : end({}, wake);
}

/// After a refusal: asks again later, or ends.
Waiter::PendingActions Waiter::refuse(const Decision& decision) noexcept {
  const Time now = clock_.now();
  const Span hint = std::max(Span{1}, decision.retry_after);
  refusal_ = decision;
  refused_by_ = place_at(refused_by_);
  places_[refused_by_].queue->last_answer = now;
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
  until_ = std::min(now + sleep_after(hint), recheck_at());
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

Waiter::PendingActions Waiter::end(std::error_code error, NextProcess wake) noexcept {
  PendingActions actions = leave_queues();
  stage_ = Stage::done;
  actions.finish = !std::exchange(is_over_, true);
  actions.wake = wake.client;
  actions.wake_by = wake.by;
  actions.error = error;
  return actions;
}

Waiter::PendingActions Waiter::end_refused(Span wait) noexcept {
  refusal_.allowed = false;
  refusal_.retry_after = std::max(Span{1}, wait);
  if (refusal_.at == Time{}) refusal_.at = clock_.now();
  return end({});
}

Waiter::PendingActions Waiter::begin_refund(NextProcess wake) noexcept {
  PendingActions actions = leave_queues();
  stage_ = Stage::refunding;
  self_ = shared_from_this();
  actions.refund = true;
  actions.wake = wake.client;
  actions.wake_by = wake.by;
  return actions;
}

void Waiter::run(const PendingActions& actions) noexcept {
  const std::shared_ptr<Waiter> alive = shared_from_this();
  if (actions.refund) {
    Completion done(&Waiter::refunded, this);
    if (store_.is_over()) {
      done.fail(Errc::shut_down);
    } else {
      refund_all(limits_, std::move(done));
    }
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
  if (actions.wake != 0) {
    actions.ticket->wake(actions.wake, actions.wake_by);
  }
}

}  // namespace sluice::detail
