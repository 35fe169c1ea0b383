// What a call that waits asks the store, and what it makes of the answers.
#include <utility>
#include <vector>

#include "src/util/uninitialized_array.hpp"
#include "src/waiting/turn_in_line.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

/// The refusal that says when to ask again: the longest wait, unless a shorter one passes the
/// deadline, which is so far away, and cannot become shorter.
const Decision& decisive(const Outcome& outcome, const std::vector<Place>& places,
                         Span left) noexcept {
  const Decision* firm = nullptr;
  for (const Decision& step : outcome.steps) {
    const bool is_firm = !step.allowed && !places[step.step].freed_early;
    if (is_firm && (firm == nullptr || step.retry_after > firm->retry_after)) firm = &step;
  }
  return firm != nullptr && firm->retry_after > left ? *firm : outcome.decision;
}

}  // namespace

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
  if (listen) turn_->ticket()->listen(home().queues, home().key);
  if (next == Next::nothing) return;
  if (next == Next::ask) {
    prepare();
  } else {
    store_.execute(*step, Completion(&Waiter::entered, this));
  }
  request_.handed_over();
}

/// Asks the limits, and before that what some of them must know.
void Waiter::prepare() noexcept {
  if (store_.is_over()) return fail(Errc::shut_down, 0);
  std::error_code error;
  std::size_t limit = 0;
  ClaimedPlan::Room room;
  const auto steps = plan_.preparations(room, error, limit);
  if (error) return fail(error, limit);
  if (steps.empty()) return ask();
  {
    const std::lock_guard lock(mutex_);
    stage_ = Stage::preparing;
  }
  store_.execute(steps, Completion(&Waiter::prepared, this));
}

void Waiter::prepared(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  std::size_t limit = 0;
  std::error_code error = outcome.error;
  if (error) limit = waiter.plan_.limit_of(outcome.decision.step);
  const std::shared_ptr<Waiter> alive = waiter.shared_from_this();
  {
    const std::lock_guard lock(waiter.mutex_);
    // Overdue, it may have been taken from what it waited for.
    if (waiter.cancelled_ || waiter.stage_ == Stage::overdue) error = Errc::cancelled;
    waiter.plan_.for_each_limit(outcome, [&](std::size_t its, const Outcome& own) {
      if (error) return;
      error = waiter.limits_[its]->prepared(own);
      limit = its;
    });
    if (!error) waiter.request_.begin_another(waiter.clock_.now(), waiter.deadline_);
  }
  if (error) return waiter.fail(error, limit);
  waiter.timer_changed();
  waiter.ask();
  waiter.request_.handed_over();
}

void Waiter::ask() noexcept {
  std::optional<Step> turn;
  std::unique_ptr<TurnInLine> unneeded;
  {
    const std::lock_guard lock(mutex_);
    stage_ = Stage::asking;
    const Time now = clock_.now();
    request_.ask(now);
    if (!limit().is_shared()) unneeded = std::move(turn_);
    if (turn_) turn = turn_->turn_step(now);
  }
  ClaimedPlan::Room room;
  ask_store(Plan(plan_.questions(room, turn)).of_wait(), Completion(&Waiter::answered, this));
}

/// Keeps the answer, and returns its decision. May throw std::bad_alloc.
Decision Waiter::read(const Outcome& outcome, const Outcome& own) {
  granted_ = {};
  refused_by_ = home_;
  if (own.decision.allowed) {
    plan_.for_each_limit(outcome, [&](std::size_t limit, const Outcome& its) {
      limits_[limit]->answered(its, request_.sent());
    });
    granted_ = own.decision;
    return own.decision;
  }
  if (limits_.size() == 1) return own.decision;
  const Decision& refusal = decisive(own, places_, deadline_ - clock_.now());
  const bool is_others_turn = refusal.step < own.steps.size() && own.steps[refusal.step].allowed;
  if (!is_others_turn) refused_by_ = refusal.step;
  return refusal;
}

void Waiter::answered(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  UninitializedArray<Decision, Plan::max_steps> each;
  for (std::size_t i = 0; i < waiter.limits_.size(); ++i) each.make(i);
  const Outcome own = waiter.plan_.by_limits(outcome, {each.data(), waiter.limits_.size()});
  if (own.error == Failure::unknown) {
    for (const auto& limit : waiter.limits_) limit->answer_lost();
  }
  if (!waiter.is_outdated(own)) return waiter.conclude(outcome, own);
  const std::shared_ptr<Waiter> alive = waiter.shared_from_this();
  waiter.prepare();
  waiter.request_.handed_over();
}

/// Whether the limits are to be asked again, since what they knew is outdated.
bool Waiter::is_outdated(const Outcome& own) noexcept {
  const std::size_t limit = own.decision.step;
  if (!own.error || limit >= limits_.size() || !limits_[limit]->is_outdated(own.error))
    return false;
  const std::lock_guard lock(mutex_);
  if (cancelled_ || stage_ == Stage::overdue) return false;
  if (!request_.may_prepare_again()) return false;
  request_.begin_another(clock_.now(), deadline_);
  return true;
}

/// The request could not be made; `limit` is at fault.
void Waiter::fail(const std::error_code& error, std::size_t limit) noexcept {
  Outcome outcome{};
  outcome.error = error;
  outcome.decision.step = static_cast<std::uint16_t>(limit);
  conclude(outcome, outcome);
}

/// The request is over.
void Waiter::conclude(const Outcome& outcome, const Outcome& own) noexcept {
  Decision decision;
  std::error_code error = own.error;
  try {
    if (!error) decision = read(outcome, own);
  } catch (const std::bad_alloc&) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  PendingActions actions;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(mutex_);
    alive = std::move(self_);
    request_.end();
    if (stage_ == Stage::overdue) {
      if (!error && decision.allowed) actions = begin_refund();
    } else {
      if (!error && decision.allowed) {
        home().queue->grant(*this);
      } else {
        home().queue->put_back(*this);
      }
      if (turn_ && !error) turn_->hear_turn(outcome, own);
      if (error) refusal_ = own.decision;
      actions = take_answer(error, decision);
    }
  }
  run(actions);
}

void Waiter::entered(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  PendingActions actions;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(waiter.mutex_);
    alive = std::move(waiter.self_);
    waiter.request_.end();
    if (waiter.stage_ == Stage::overdue) {
      actions.ticket = waiter.turn_->ticket();
      if (!outcome.error) actions.leave = waiter.turn_->leave_if_nobody_waits();
    } else {
      waiter.home().queue->put_back(waiter);
      const NextProcess wake = waiter.turn_->entered(outcome);
      if (waiter.cancelled_) {
        actions = waiter.end(Errc::cancelled);
      } else {
        waiter.stage_ = Stage::queued;
        waiter.resumes_ = true;
        actions = {.timer = true,
                   .ticket = waiter.turn_->ticket()};  // it may no longer be the first
      }
      actions.wake = wake;
    }
  }
  waiter.run(actions);
}

void Waiter::refunded(void* self, const Outcome&) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  PendingActions actions;
  std::shared_ptr<Waiter> alive;
  {
    const std::lock_guard lock(waiter.mutex_);
    alive = std::move(waiter.self_);
    actions = waiter.end(Errc::cancelled);
  }
  waiter.run(actions);
}

}  // namespace sluice::detail
