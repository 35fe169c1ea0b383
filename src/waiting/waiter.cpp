// How one call that waits begins and ends. waiter_requests.cpp has what it asks.
#include "sluice/detail/waiter.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "sluice/limiters/waitable.hpp"
#include "src/util/uninitialized_array.hpp"
#include "src/waiting/tell_of_wait.hpp"
#include "src/waiting/turn_in_line.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {

Arrival new_arrival(const Clock& clock, std::size_t count) noexcept {
  static std::atomic<std::uint64_t> arrivals{0};
  // A mutex orders those of one queue.
  return {to_word(clock.now()), arrivals.fetch_add(count, std::memory_order_relaxed)};
}

Waiter::Waiter(ClaimedLimits limits, const Deadline& deadline, Caller caller,
               const std::optional<Arrival>& arrival)
    : WaitCourse(std::move(limits), deadline, std::move(caller)),
      mutex_(limits_.front()->queues()->mutex()),
      given_arrival_(arrival) {}

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
  if (!granted_.allowed) limits_.front()->answered(Outcome{{}, refusal_, {}, {}}, request_.sent());
  return std::move(limits_.front());
}

void Waiter::start() noexcept {
  // Of several alternatives, FirstOfWait tells, once for all.
  if (!may_leave_) tell_of_begin({store_, this, first_limit()});
  PendingActions actions;
  {
    const std::lock_guard lock(mutex_);
    arrival_ = given_arrival_.value_or(new_arrival(clock_));
    try {
      take_places();
      actions = join(Time{}, Span{0});
    } catch (const std::bad_alloc&) {
      actions = end(std::make_error_code(std::errc::not_enough_memory));
    }
  }
  run(actions);
}

void Waiter::on_time() noexcept {
  PendingActions actions;
  {
    const std::lock_guard lock(mutex_);
    const Time now = clock_.now();
    const bool is_waiting = stage_ == Stage::sleeping || stage_ == Stage::queued;
    if (is_waiting && !begun_in_.is_here()) {
      actions = end(Errc::forked);
    } else if (stage_ == Stage::sleeping && now >= until_) {
      stage_ = Stage::queued;
      resumes_ = true;
      moves_ = 0;
      until_ = Time::max();
      actions.timer = true;  // it may have been overtaken
    } else if (stage_ == Stage::sleeping) {
      actions.timer = true;
    } else if (stage_ == Stage::queued && now >= deadline_) {
      actions = end_refused(home().queue->sleep_before(*this));
    } else if (is_at_store() && request_.is_overdue(now)) {
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
      return request_.answer_by();
    default:
      return Time::max();
  }
}

bool Waiter::is_under_way() const {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::queued) return is_about_to_ask();
  return is_at_store() || stage_ == Stage::refunding;
}

bool Waiter::is_behind() const {
  const std::lock_guard lock(mutex_);
  return stage_ == Stage::queued && !is_about_to_ask();
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
  if (actions.finish) {
    if (!may_leave_) {
      const ClaimedLimit* const refuser =
          actions.refuser ? limits_[*actions.refuser].get() : nullptr;
      tell_of_end({store_, this, first_limit()}, arrival_, actions.error, actions.is_refused,
                  refuser);
    }
    finished(actions.error);
  }
  if (const auto& dropped = actions.dropped) {
    dropped->run({.finish = true,
                  .leave = actions.dropped_leaves,
                  .ticket = dropped->turn_ ? dropped->turn_->ticket() : nullptr,
                  .error = Errc::too_many_waiters,
                  .refuser = dropped->last_refuser_});
  }
  for (const Place& place : places_) place.queues->pump(place.key);
  if (const auto& overtaken = actions.overtaken) {
    for (const Place& place : overtaken->places_) place.queues->pump(place.key);
    overtaken->timer_changed();
  }
  if (actions.timer) timer_changed();
  if (actions.wake.client != 0) actions.ticket->wake(actions.wake);
}

}  // namespace sluice::detail
