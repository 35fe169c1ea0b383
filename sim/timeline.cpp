// Events are in slots; the queue orders their ids. Events posted for now are in a ring instead.
#include "sluice/sim/timeline.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sluice::sim {

EndlessInstant::EndlessInstant(Time at, std::uint64_t events)
    : std::runtime_error("the time stands still at " + std::to_string(to_word(at)) +
                         " us: " + std::to_string(events) +
                         " events have run there, as of a loop that waits for nothing"),
      at_(at),
      events_(events) {}

Timeline::Timer Timeline::at(Time when, Action action, void* context, std::uint64_t value) {
  const Word time = to_word(when);
  if (time < now_ || time > word_limit) {
    throw std::out_of_range("an event must lie between now, " + std::to_string(now_) +
                            " us, and 2^52 us, got " + std::to_string(time) + " us");
  }
  const std::uint64_t id = take_slot({action, context, value, 0});
  try {
    if (time == now_ && !shuffled_) {
      posted_.push({nullptr, nullptr, 0, id});
    } else {
      queue_.push({time, id}, now_);
    }
  } catch (...) {
    release(id);
    throw;
  }
  return Timer(id);
}

void Timeline::post(Action action, void* context, std::uint64_t value) {
  if (shuffled_) {
    at(to_time(now_), action, context, value);
    return;
  }
  if (bare_ == max_pending) throw std::length_error("a timeline holds at most 2^24 posted events");
  posted_.push({action, context, value, 0});
  ++bare_;
}

Timeline::Timer Timeline::park(Action action, void* context, std::uint64_t value) {
  const std::uint64_t id = take_slot({action, context, value, 0}) | parked_mark;
  slots_[id & slot_mask].id = id;
  ++parked_;
  return Timer(id);
}

void Timeline::shuffle_ties(std::uint64_t seed) noexcept {
  shuffled_ = true;
  queue_.shuffle_ties(seed);
}

std::uint64_t Timeline::take_slot(const Event& event) {
  if (sequence_ == ~parked_mark >> slot_bits) {
    throw std::length_error("a timeline runs at most 2^39 events in its life");
  }
  if (free_.empty()) {
    if (slots_.size() == max_pending) {
      throw std::length_error("a timeline holds at most 2^24 pending events");
    }
    if (free_.capacity() <= slots_.size()) free_.reserve(slots_.size() * 2 + 64);
    slots_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot] = event;
  return slots_[slot].id = ++sequence_ << slot_bits | slot;
}

void Timeline::release(std::uint64_t id) noexcept {
  slots_[id & slot_mask].id = 0;
  // Never allocates: take_slot() made room.
  free_.push_back(static_cast<std::uint32_t>(id & slot_mask));
}

bool Timeline::cancel(Timer timer) noexcept {
  const std::uint64_t id = timer.id();
  if (id == 0 || (id & slot_mask) >= slots_.size() || is_stale(id)) return false;
  release(id);
  if ((id & parked_mark) != 0) {
    --parked_;
  } else if (++stale_ > 64 && stale_ > queue_.size() / 2) {
    drop_stale();
  }
  return true;
}

void Timeline::drop_stale() noexcept {
  const std::size_t before = queue_.size();
  queue_.erase_if([this](const EventQueue::Node& node) { return is_stale(node.id); });
  stale_ -= before - queue_.size();
}

void Timeline::take_live(std::uint64_t id, Event& event) noexcept {
  event = slots_[id & slot_mask];
  release(id);
}

/// An event in a large simulation causes a chain of cache misses: its slot, its context, and what
/// that points to. Prefetching overlaps many chains.
void Timeline::fetch_coming() noexcept {
  const auto coming = queue_.take_coming();
  for (const std::uint64_t id : coming) __builtin_prefetch(&slots_[id & slot_mask]);
  for (const std::uint64_t id : coming) {
    const auto* const context = static_cast<const char*>(slots_[id & slot_mask].context);
    __builtin_prefetch(context);
    __builtin_prefetch(context + 64);
  }
  if (fetch_ == nullptr) return;
  for (const std::uint64_t id : coming) {
    const Event& event = slots_[id & slot_mask];
    if (event.id == id) fetch_(event.action, event.context);
  }
}

bool Timeline::take_queued(Word end, Event& event, Word& time) {
  for (EventQueue::Node node{}; queue_.pop(end, node); --stale_) {
    fetch_coming();
    if (is_stale(node.id)) continue;
    time = node.time;
    take_live(node.id, event);
    return true;
  }
  return false;
}

bool Timeline::take_posted(Event& event) noexcept {
  for (; posted_.size() != 0; --stale_) {
    event = posted_.pop();
    if (event.id == 0) {
      --bare_;
      return true;
    }
    if (is_stale(event.id)) continue;
    take_live(event.id, event);
    return true;
  }
  return false;
}

bool Timeline::take_parked(Event& event) noexcept {
  if (parked_ == 0) return false;
  const auto parked = [](const Event& slot) { return (slot.id & parked_mark) != 0; };
  event = *std::find_if(slots_.begin(), slots_.end(), parked);
  release(event.id);
  --parked_;
  return true;
}

bool Timeline::take_next(Word end, Event& event, Word& time) {
  if (posted_.size() == 0) return take_queued(end, event, time);
  time = now_;
  if (!instant_done_) {
    if (take_queued(now_, event, time)) return true;
    instant_done_ = true;
  }
  return take_posted(event) || take_queued(end, event, time);
}

void Timeline::move_to(Word time) {
  if (time == now_) return;
  clock_.move_alone(to_time(time));
  now_ = time;
  instant_done_ = false;
  begin_instant();
}

void Timeline::limit_instant(std::uint64_t most) {
  if (most == 0) throw std::invalid_argument("an instant has 1 event or more, got a limit of 0");
  instant_limit_ = most;
  begin_instant();
}

void Timeline::begin_instant() noexcept {
  instant_end_ = events_ + std::min(instant_limit_, ~events_);
}

void Timeline::end_instant() {
  begin_instant();
  throw EndlessInstant(now(), instant_limit_);
}

bool Timeline::step(Time end) {
  Event event{};
  Word time = 0;
  if (!take_next(to_word(end), event, time)) return false;
  move_to(time);
  ++events_;
  const std::uint64_t order = event.id >> slot_bits;
  trace_.fold(to_time(time), order);
  if (observer_ != nullptr) show({to_time(time), false, order, 0, 0, 0, 0});
  event.action(event.context, event.value);
  if (events_ >= instant_end_) end_instant();
  return true;
}

void Timeline::show(TraceStep step) {
  step.trace = trace();
  observer_(observer_context_, step);
}

void Timeline::run_until(Time end) {
  const Word last = to_word(end);
  if (last < now_ || last > word_limit) {
    throw std::out_of_range("a timeline at " + std::to_string(now_) + " us cannot run until " +
                            std::to_string(last) + " us");
  }
  while (step(end)) {
  }
  move_to(last);
}

void Timeline::Posted::grow() {
  std::vector<Event> larger(std::max<std::size_t>(64, ring_.size() * 2));
  for (std::size_t i = 0; i < size_; ++i) larger[i] = ring_[(first_ + i) & (ring_.size() - 1)];
  ring_ = std::move(larger);
  first_ = 0;
}

}  // namespace sluice::sim
