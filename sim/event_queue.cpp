// The radix queue: digits of times, buckets of chunks.
#include "sluice/sim/event_queue.hpp"

#include <bit>
#include <utility>

namespace sluice::sim {

std::size_t EventQueue::bucket_of(Word time) const noexcept {
  const auto differs = static_cast<std::uint64_t>(time ^ base_);
  const auto level = static_cast<std::size_t>(std::bit_width(differs | 1) - 1) / digit_bits;
  const auto digit = static_cast<std::size_t>(time >> (level * digit_bits)) % digits;
  return level * digits + digit;
}

/// The first time of the bucket.
Word EventQueue::start_of(std::size_t bucket) const noexcept {
  const std::size_t shift = bucket / digits * digit_bits;
  const auto digit = static_cast<Word>(bucket % digits);
  return (((base_ >> shift) & ~Word{digits - 1}) | digit) << shift;
}

/// REQUIRES: size_ > 0.
std::size_t EventQueue::first_bucket() const noexcept {
  const auto level = static_cast<std::size_t>(std::countr_zero(used_levels_));
  std::size_t part = 0;
  while (used_[level][part] == 0) ++part;
  return level * digits + part * 64 +
         static_cast<std::size_t>(std::countr_zero(used_[level][part]));
}

void EventQueue::push(const Node& node, Word now) {
  if (size_ == 0) base_ = now;
  if (node.time < base_) rebase(now);  // `base_` is later than `now` after drained events
  append(bucket_of(node.time), node);
  ++size_;
}

void EventQueue::append(std::size_t index, const Node& node) {
  Bucket& bucket = buckets_[index];
  if (bucket.head == none || bucket.end == Chunk::capacity) {
    if (free_ == none) {
      free_ = static_cast<std::uint32_t>(chunks_.size());
      chunks_.emplace_back().next = none;
    }
    const std::uint32_t chunk = std::exchange(free_, chunks_[free_].next);
    if (bucket.head == none) {
      bucket = {chunk, chunk, 0, 0};
      const std::size_t digit = index % digits;
      used_[index / digits][digit / 64] |= std::uint64_t{1} << (digit % 64);
      used_levels_ |= 1U << (index / digits);
    } else {
      chunks_[bucket.tail].next = chunk;
      bucket.tail = chunk;
      bucket.end = 0;
    }
  }
  chunks_[bucket.tail].nodes[bucket.end++] = node;
}

void EventQueue::mark_empty(std::size_t index) noexcept {
  buckets_[index].head = none;
  auto& used = used_[index / digits];
  used[index % digits / 64] &= ~(std::uint64_t{1} << (index % 64));
  if ((used[0] | used[1] | used[2] | used[3]) == 0) used_levels_ &= ~(1U << (index / digits));
}

void EventQueue::free_chunk(std::uint32_t chunk) noexcept {
  chunks_[chunk].next = std::exchange(free_, chunk);
}

bool EventQueue::pop(Word end, Node& node) {
  while (size_ != 0) {
    const std::size_t index = first_bucket();
    const Bucket& bucket = buckets_[index];
    if (index >= digits && bucket.head == bucket.tail) return take_least(index, end, node);
    if (start_of(index) > end) return false;
    base_ = start_of(index);
    if (index < digits) {
      if (shuffled_) swap_front_with_any(bucket);
      take_front(index, node);
      return true;
    }
    spread(index);
  }
  return false;
}

/// REQUIRES: `base_` is the first time of the bucket.
void EventQueue::spread(std::size_t index) {
  std::size_t count = 0;
  empty(index, [&](const Node& each) {
    append(bucket_of(each.time), each);
    if (count < coming_.size()) coming_[count] = each.id;
    ++count;
  });
  coming_count_ = count <= coming_.size() ? count : 0;
}

void EventQueue::take_front(std::size_t index, Node& node) noexcept {
  Bucket& bucket = buckets_[index];
  const std::uint32_t chunk = bucket.head;
  node = chunks_[chunk].nodes[bucket.first++];
  --size_;
  if (chunk == bucket.tail) {
    if (bucket.first != bucket.end) return;
    mark_empty(index);
  } else {
    if (bucket.first != Chunk::capacity) return;
    bucket.head = chunks_[chunk].next;
    bucket.first = 0;
  }
  free_chunk(chunk);
}

/// Pops the first event of a bucket of one chunk. `base_` stays while others are left, so that they
/// stay in the right bucket.
bool EventQueue::take_least(std::size_t index, Word end, Node& node) noexcept {
  Bucket& bucket = buckets_[index];
  auto& nodes = chunks_[bucket.head].nodes;
  std::uint32_t least = bucket.first;
  std::uint64_t ties = 1;
  for (std::uint32_t i = least + 1; i < bucket.end; ++i) {
    if (nodes[i].time < nodes[least].time) {
      least = i;
      ties = 1;
    } else if (shuffled_ && nodes[i].time == nodes[least].time && rng_.below(++ties) == 0) {
      least = i;
    }
  }
  node = nodes[least];
  if (node.time > end) return false;
  for (std::uint32_t i = least; i + 1 < bucket.end; ++i) nodes[i] = nodes[i + 1];
  --size_;
  if (--bucket.end == bucket.first) {
    base_ = node.time;
    free_chunk(bucket.head);
    mark_empty(index);
  }
  return true;
}

void EventQueue::swap_front_with_any(const Bucket& bucket) noexcept {
  std::uint64_t end = bucket.end;
  for (std::uint32_t at = bucket.head; at != bucket.tail; at = chunks_[at].next) {
    end += Chunk::capacity;
  }
  std::uint64_t place = bucket.first + rng_.below(end - bucket.first);
  std::uint32_t chunk = bucket.head;
  for (; place >= Chunk::capacity; place -= Chunk::capacity) chunk = chunks_[chunk].next;
  std::swap(chunks_[bucket.head].nodes[bucket.first], chunks_[chunk].nodes[place]);
}

/// Moves `base_` back. Events move to higher levels or stay, and events of equal times together; so
/// the higher levels come first.
void EventQueue::rebase(Word now) {
  base_ = now;
  for (std::size_t level = levels; level-- > 0;) {
    for (std::size_t i = level * digits; i < (level + 1) * digits; ++i) {
      empty(i, [this](const Node& each) { append(bucket_of(each.time), each); });
    }
  }
}

}  // namespace sluice::sim
