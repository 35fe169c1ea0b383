// The heap of events: four children a node, 16 bytes a node, actions in slots beside it.
#include "sluice/sim/timeline.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sluice::sim {
namespace {

constexpr std::size_t arity = 4;

}  // namespace

Timeline::Timer Timeline::at(Time when, Action action, void* context, std::uint64_t value) {
  const Word time = to_word(when);
  if (time < now_ || time > word_limit) {
    throw std::out_of_range("an event must lie between now, " + std::to_string(now_) +
                            " us, and 2^52 us, got " + std::to_string(time) + " us");
  }
  heap_.emplace_back();  // before the slot is taken: it may throw
  std::uint32_t slot = 0;
  try {
    slot = take_slot();
  } catch (...) {
    heap_.pop_back();
    throw;
  }
  const std::uint64_t id = ++sequence_ << slot_bits | slot;
  slots_[slot] = {action, context, value, id};
  sift_up(heap_.size() - 1, {time, id});
  return Timer(id);
}

std::uint32_t Timeline::take_slot() {
  if (!free_.empty()) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  if (slots_.size() == max_pending || sequence_ == ~std::uint64_t{0} >> slot_bits) {
    throw std::length_error("a timeline holds at most 2^24 pending events, and 2^40 in its life");
  }
  if (free_.capacity() <= slots_.size()) free_.reserve(slots_.size() * 2 + 64);
  slots_.emplace_back();
  return static_cast<std::uint32_t>(slots_.size() - 1);
}

void Timeline::release(std::uint64_t id) noexcept {
  slots_[id & slot_mask].id = 0;
  // Never allocates: take_slot() made room.
  free_.push_back(static_cast<std::uint32_t>(id & slot_mask));
}

bool Timeline::cancel(Timer timer) {
  const std::size_t slot = timer.id_ & slot_mask;
  if (timer.id_ == 0 || slot >= slots_.size() || slots_[slot].id != timer.id_) return false;
  release(timer.id_);
  ++stale_;
  if (stale_ > 64 && stale_ > heap_.size() / 2) drop_all_stale();
  return true;
}

void Timeline::drop_all_stale() {
  std::erase_if(heap_, [this](const Node& node) { return is_stale(node); });
  stale_ = 0;
  for (std::size_t i = heap_.size() / arity + 1; i-- > 0;) {
    if (i < heap_.size()) sift_down(i, Node{heap_[i]});
  }
}

void Timeline::sift_up(std::size_t hole, const Node& node) noexcept {
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / arity;
    if (!node.before(heap_[parent])) break;
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = node;
}

void Timeline::sift_down(std::size_t hole, const Node& node) noexcept {
  const std::size_t size = heap_.size();
  for (;;) {
    const std::size_t first = hole * arity + 1;
    if (first >= size) break;
    std::size_t least = first;
    for (std::size_t child = first + 1; child < std::min(first + arity, size); ++child) {
      if (heap_[child].before(heap_[least])) least = child;
    }
    if (!heap_[least].before(node)) break;
    heap_[hole] = heap_[least];
    hole = least;
  }
  heap_[hole] = node;
}

void Timeline::pop() noexcept {
  const Node last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0, last);
}

void Timeline::drop_stale() noexcept {
  while (!heap_.empty() && is_stale(heap_.front())) {
    pop();
    --stale_;
  }
}

void Timeline::move_to(Word time) {
  if (time == now_) return;
  clock_.set(to_time(time));
  now_ = time;
}

void Timeline::run_top() {
  const Node top = heap_.front();
  const Slot slot = slots_[top.id & slot_mask];
  move_to(top.time);
  release(top.id);
  pop();
  ++events_;
  slot.action(slot.context, slot.value);
}

bool Timeline::step() {
  drop_stale();
  if (heap_.empty()) return false;
  run_top();
  return true;
}

void Timeline::run_until(Time end) {
  const Word last = to_word(end);
  if (last < now_ || last > word_limit) {
    throw std::out_of_range("a timeline at " + std::to_string(now_) + " us cannot run until " +
                            std::to_string(last) + " us");
  }
  for (drop_stale(); !heap_.empty() && heap_.front().time <= last; drop_stale()) run_top();
  move_to(last);
}

}  // namespace sluice::sim
