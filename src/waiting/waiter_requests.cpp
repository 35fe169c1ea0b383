// What a call that waits asks the store, and what it makes of the answers.
#include <algorithm>
#include <utility>

#include "src/util/uninitialized_array.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// A request that is sent at the end of a wait has this long for its answer.
constexpr Span shortest_trip = std::chrono::milliseconds{100};

// So often a request is prepared: each time, what was prepared had changed when it arrived.
constexpr unsigned most_preparations = 16;

/// Grants are the shortest, and of those the ones that have left the most.
bool is_shorter_wait(const Decision& a, const Decision& b) noexcept {
  if (a.allowed != b.allowed) return a.allowed;
  return a.allowed ? a.remaining > b.remaining : a.retry_after < b.retry_after;
}

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
    prepare();
  } else {
    ticket_->store().execute(*step, Completion(&Waiter::entered, this));
  }
  handed_over_.fetch_add(1);
}

/// The steps of one plan, of which it is noted what they are for.
struct Waiter::Steps {
  explicit Steps(Waiter& waiter) noexcept : parts(waiter.asked_) { parts.clear(); }
  void add(const Step& step, std::size_t limit, bool decides) noexcept {
    all.make(parts.size(), [&] { return step; });
    parts.push_back({limit, output_count(*step.operation, step.table.size()), decides});
  }
  [[nodiscard]] std::span<const Step> span() const noexcept { return {all.data(), parts.size()}; }

  UninitializedArray<Step, Plan::max_steps + 1> all;
  std::vector<Part>& parts;
};

/// Asks the limits, and before that what some of them must know.
void Waiter::prepare() noexcept {
  if (store_.is_over()) return fail(Errc::shut_down, 0);
  Steps steps(*this);
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    std::error_code error;
    const auto step = limits_[i]->preparation(error);
    if (error) return fail(error, i);
    if (step) steps.add(*step, i, true);
  }
  if (asked_.empty()) return ask();
  {
    const std::lock_guard lock(mutex_);
    stage_ = Stage::preparing;
  }
  store_.execute(steps.span(), Completion(&Waiter::prepared, this));
}

void Waiter::prepared(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  std::size_t limit = 0;
  std::error_code error = outcome.error;
  if (error) limit = waiter.limit_of(outcome.decision.step);
  const std::shared_ptr<Waiter> alive = waiter.shared_from_this();
  {
    const std::lock_guard lock(waiter.mutex_);
    // Overdue, it may have been taken from what it waited for.
    if (waiter.cancelled_ || waiter.stage_ == Stage::overdue) error = Errc::cancelled;
    waiter.for_each_limit(outcome, [&](std::size_t its, const Outcome& own) {
      if (error) return;
      error = waiter.limits_[its]->prepared(own);
      limit = its;
    });
    if (!error) waiter.begin_another();
  }
  if (error) return waiter.fail(error, limit);
  waiter.timer_changed();
  waiter.ask();
  waiter.handed_over_.fetch_add(1);
}

void Waiter::ask() noexcept {
  std::optional<Step> turn;
  std::shared_ptr<QueueTicket> unneeded;
  {
    const std::lock_guard lock(mutex_);
    stage_ = Stage::asking;
    sent_ = clock_.now();
    if (ticket_ && !limits_[home_]->is_shared()) unneeded = std::move(ticket_);
    if (ticket_) turn = turn_step(sent_);
  }
  Steps steps(*this);
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    if (const auto condition = limits_[i]->condition()) steps.add(*condition, i, false);
    steps.add(limits_[i]->step(), i, true);
  }
  if (turn) steps.add(*turn, limits_.size(), false);
  store_.execute(steps.span(), Completion(&Waiter::answered, this));
}

/// Whose step it is, in the plan at the store.
std::size_t Waiter::limit_of(std::size_t step) const noexcept {
  return step < asked_.size() ? asked_[step].limit : 0;
}

/// Calls `hear(limit, own)` with the answer to each step that decides.
template <class Hear>
void Waiter::for_each_limit(const Outcome& outcome, const Hear& hear) const {
  auto output = outcome.output;
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    Outcome own{{}, outcome.decision, {}, output.first(std::min(asked_[i].words, output.size()))};
    output = output.subspan(own.output.size());
    if (!asked_[i].decides) continue;
    if (i < outcome.steps.size()) own.decision = outcome.steps[i];
    own.decision.step = static_cast<std::uint16_t>(asked_[i].limit);
    own.steps = {&own.decision, 1};
    hear(asked_[i].limit, own);
  }
}

/// The same outcome, as if the plan had one step for each limit: its decision is that of the
/// limits, granted if the turn was as well.
Outcome Waiter::by_limits(const Outcome& outcome, std::span<Decision> each) const noexcept {
  Outcome own = outcome;
  own.decision.step = static_cast<std::uint16_t>(limit_of(outcome.decision.step));
  if (outcome.error) return own;
  for_each_limit(outcome,
                 [&](std::size_t limit, const Outcome& its) { each[limit] = its.decision; });
  own.steps = each;
  const bool has_turn = asked_.back().limit == limits_.size();
  if (has_turn || !asked_[outcome.decision.step].decides) {
    own.decision = *std::max_element(each.begin(), each.end(), is_shorter_wait);
    own.decision.allowed = outcome.decision.allowed;
  }
  return own;
}

/// Keeps the answer, and returns its decision. May throw std::bad_alloc.
Decision Waiter::read(const Outcome& outcome, const Outcome& own) {
  granted_ = {};
  refused_by_ = home_;
  if (own.decision.allowed) {
    for_each_limit(outcome, [&](std::size_t limit, const Outcome& its) {
      limits_[limit]->answered(its, sent_);
    });
    granted_ = own.decision;
    return own.decision;
  }
  if (limits_.size() == 1) return own.decision;
  const Decision& refusal = decisive(own);
  const bool is_others_turn = refusal.step < own.steps.size() && own.steps[refusal.step].allowed;
  if (!is_others_turn) refused_by_ = refusal.step;
  return refusal;
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
  if (!ticket_ && now < std::min(pause_end(now), recheck_at())) {
    pause(now);
    return Next::nothing;
  }
  answer_by_ = answer_by(now);
  ++requests_;
  sent_ = now;
  preparations_ = 0;
  if (next == Next::ask) note_wakes();
  self_ = shared_from_this();
  return next;
}

/// Another request of those that are asked before the limits have answered.
void Waiter::begin_another() noexcept {
  ++requests_;
  answer_by_ = std::max(answer_by_, answer_by(clock_.now()));
}

bool Waiter::is_at_store() const noexcept {
  return stage_ == Stage::preparing || stage_ == Stage::asking || stage_ == Stage::entering;
}

/// A call that may not wait at all is a try: it has as long for its answer as the store gives it.
Time Waiter::answer_by(Time now) const noexcept {
  const bool is_try = requests_ == 0 && deadline_ <= now;
  if (is_try || deadline_ > Time::max() - shortest_trip) return Time::max();
  return std::max(deadline_, now + shortest_trip);
}

/// Not while the request is still handed over: the caller may destroy the store once the wait ends.
bool Waiter::is_overdue(Time now) const noexcept {
  return is_at_store() && now >= answer_by_ && handed_over_.load() == requests_;
}

void Waiter::answered(void* self, const Outcome& outcome) noexcept {
  Waiter& waiter = *static_cast<Waiter*>(self);
  UninitializedArray<Decision, Plan::max_steps> each;
  for (std::size_t i = 0; i < waiter.limits_.size(); ++i) each.make(i);
  const Outcome own = waiter.by_limits(outcome, {each.data(), waiter.limits_.size()});
  if (!waiter.is_outdated(own)) return waiter.conclude(outcome, own);
  const std::shared_ptr<Waiter> alive = waiter.shared_from_this();
  waiter.prepare();
  waiter.handed_over_.fetch_add(1);
}

/// Whether the limits are to be asked again, since what they knew is outdated.
bool Waiter::is_outdated(const Outcome& own) noexcept {
  const std::size_t limit = own.decision.step;
  if (!own.error || limit >= limits_.size() || !limits_[limit]->is_outdated(own.error))
    return false;
  const std::lock_guard lock(mutex_);
  if (cancelled_ || stage_ == Stage::overdue) return false;
  if (++preparations_ >= most_preparations) return false;
  begin_another();
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
    answer_by_ = Time::max();
    if (stage_ == Stage::overdue) {
      if (!error && decision.allowed) actions = begin_refund();
    } else {
      if (!error && decision.allowed) {
        home().queue->grant(*this);
      } else {
        home().queue->put_back(*this);
      }
      if (ticket_ && !error) note_turn(outcome, own);
      if (error) refusal_ = own.decision;
      actions = take_answer(error, decision);
    }
  }
  run(actions);
}

/// After a grant more requests may be in flight, but no more than what remains.
void Waiter::note_grant(const Decision& decision) noexcept {
  const auto remaining =
      static_cast<std::size_t>(std::clamp<Word>(decision.remaining, 1, word_limit));
  home().queue->in_flight_limit =
      std::min({2 * home().queue->in_flight_limit, WaitQueue::max_in_flight, remaining});
  for (std::size_t i = 0; i < places_.size(); ++i) {
    WaitQueue& queue = *places_[i].queue;
    queue.last_grant = queue.last_answer = clock_.now();
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
