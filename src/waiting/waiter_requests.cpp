// What a call that waits asks the store, and what it makes of the answers.
#include <algorithm>
#include <utility>

#include "src/util/uninitialized_array.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// A request that is sent at the end of a wait has this long for its answer.
constexpr Span shortest_trip = std::chrono::milliseconds{100};

/// What a process has prefetched comes back earlier than the limit refills.
Decision unless_prefetched(const Decision& left) noexcept {
  return left.source == Source::prefetched ? Decision{} : left;
}

}  // namespace

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

}  // namespace sluice::detail
