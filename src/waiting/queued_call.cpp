#include "sluice/detail/queued_call.hpp"

#include <algorithm>
#include <utility>

#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// So many units of one caller count; those of a long queue still have a sum.
constexpr Word most_units = Word{1} << 32;

}  // namespace

void Standing::ask(const WaitQueue& queue) noexcept {
  wakes_ = queue.wakes;
  releases_ = queue.releases;
  refused_until_ = {};
}

Time Standing::refused_until(const WaitQueue& queue) const noexcept {
  return was_woken(queue) ? Time{} : refused_until_;
}

bool Standing::was_woken(const WaitQueue& queue) const noexcept { return wakes_ != queue.wakes; }

bool Standing::is_released(const WaitQueue& queue) const noexcept {
  return releases_ != queue.releases;
}

void Standing::note_release(const WaitQueue& queue) noexcept { releases_ = queue.releases; }

QueuedCall::QueuedCall(ClaimedLimits limits, const Deadline& deadline, Caller caller)
    : limits_(std::move(limits)),
      clock_(limits_.front()->store().clock()),
      rechecks_(!limits_.front()->store().stamps_by_clock() ||
                std::any_of(limits_.begin(), limits_.end(),
                            [](const auto& limit) { return limit->may_change(); })),
      deadline_(deadline.on(clock_)),
      caller_(std::move(caller)) {
  places_.reserve(limits_.size());
  for (const auto& limit : limits_) {
    places_.push_back({.queues = limit->queues(),
                       .key = queue_key(limit->key()),
                       .units = std::clamp(limit->units(), Word{0}, most_units),
                       .freed_early = limit->freed_early()});
  }
}

/// Keeps the queues of its limits while it waits.
void QueuedCall::take_places() {
  for (Place& place : places_) {
    WaitQueue& queue = place.queues->take_queue(place.key);
    place.queue = &queue;
    place.standing.ask(queue);
    ++queue.callers;
  }
}

/// REQUIRES: it is in no line.
void QueuedCall::leave_places() noexcept {
  for (Place& place : places_) {
    if (place.queue != nullptr) --place.queue->callers;
    place.queue = nullptr;
  }
}

/// Returns whether the ticket is given up: if nobody else here waits for the limit; or asks for it,
/// since this call keeps its turn: a turn is kept in one process only.
bool QueuedCall::quit_home() noexcept {
  if (!std::exchange(is_at_home_, false)) return false;
  const bool is_last = --home().queue->homes == 0;
  return is_last || home().is_in_line;
}

/// The place of a limit: of the first one with that key.
std::size_t QueuedCall::place_at(std::size_t limit) const noexcept {
  return place_in(*places_[limit].queue).value_or(limit);
}

/// The place in this queue.
std::optional<std::size_t> QueuedCall::place_in(const WaitQueue& queue) const noexcept {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].queue == &queue) return i;
  }
  return std::nullopt;
}

bool QueuedCall::is_first() const noexcept {
  return home().queue->line.first() == WaitQueue::place_of(*this);
}

/// That it surely takes of the limit of this queue, if it is granted.
Word QueuedCall::own_units() const noexcept {
  return limits_.size() > 1 || may_leave_ ? 0 : home().units;
}

bool QueuedCall::shares_flow_with(const QueuedCall& other) const noexcept {
  return caller_.priority == other.caller_.priority && caller_.flow == other.caller_.flow;
}

void QueuedCall::note_ask(Time now) noexcept {
  asked_at_ = now;
  moves_ = 0;
  for (Place& place : places_) place.standing.ask(*place.queue);
}

/// Whether something came back to one of its limits, or a turn did, since it asked.
bool QueuedCall::was_woken() const noexcept {
  return std::any_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.standing.was_woken(*place.queue); });
}

/// The call need not ask before this instant: the units of this limit cannot be there before. A
/// call whose deadline comes first asks at once, and the answer is final.
Time QueuedCall::units_at(std::size_t index, Time now) const noexcept {
  const Place& place = places_[index];
  const WaitQueue& queue = *place.queue;
  Time at = queue.left_at + limits_[index]->refill_time(queue.left);
  at = std::max(at, place.standing.refused_until(queue));
  if (place.freed_early) at = std::min(at, deadline_);
  return at <= deadline_ ? std::max(now, at) : now;
}

/// When the first of the queue asks again before the limiter's hint: another process may have given
/// something back.
Time QueuedCall::recheck_at() const noexcept {
  if (!rechecks_) return Time::max();
  return std::max(home().queue->last_answer, asked_at_) + home().queues->options_.recheck;
}

/// Another of its limits whose units cannot be there before those of its home.
std::optional<std::size_t> QueuedCall::slower_limit(Time now) const noexcept {
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

/// Another of its limits for which a call waits that goes before this one.
std::optional<std::size_t> QueuedCall::sleeper_ahead() const noexcept {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].queue == home().queue) continue;
    if (places_[i].queue->is_waited_for_before(*this, places_[i])) return i;
  }
  return std::nullopt;
}

/// While it waits `hint` for another limit. When a lease is released is not known. Nobody takes
/// anything of a gate, which is open or closed for all.
bool QueuedCall::keeps_turn(std::size_t index, std::size_t next, Span hint) const noexcept {
  const Place& place = places_[index];
  if (!place.standing.has_waited() || hint == Span::max()) return false;
  if (limits_[index]->close_step(Span{0}) || limits_[next]->close_step(Span{0})) return false;
  return places_[next].freed_early || place.standing.has_waited(hint);
}

/// Before it moves. It was asked for at its home for the last time at `asked`.
void QueuedCall::keep_turns(std::size_t next, Time asked, Span hint) noexcept {
  ++moves_;
  home().standing.add_wait(std::max(Span{0}, asked - joined_));
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (!place.is_in_line || i == next) continue;
    if (keeps_turn(i, next, hint)) {
      place.queue->line.keep_turn(WaitQueue::place_of(*this));
      place.standing.keep_turn(clock_.now());
    } else {
      place.queue->erase(*this, place);
    }
  }
}

/// When it next loses a turn that it keeps elsewhere.
Time QueuedCall::next_lapse() const noexcept {
  Time next = Time::max();
  for (const Place& place : places_) {
    const bool keeps = place.is_in_line && place.queue != home().queue;
    if (keeps && place.standing.keeps_turn(clock_.now())) {
      next = std::min(next, place.standing.lapses_at());
    }
  }
  return next;
}

}  // namespace sluice::detail
