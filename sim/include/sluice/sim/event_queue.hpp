// EventQueue: a priority queue of events by time; events of one time stay in order of insertion.
// Threading: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice::sim {

/// A radix queue. A time is seven digits of eight bits; an event is on the level of the first digit
/// in which it differs from `base_`, a time before all events, in the bucket of that digit. The
/// first event is thus in the first bucket of the lowest level. When a bucket of more than a few
/// events is next, it is spread over lower levels, so that an event moves at most six times, in
/// practice once or twice. Events of one time keep their order: they always share a bucket, and
/// spreading preserves it.
class EventQueue {
 public:
  struct Node {
    Word time;
    std::uint64_t id;
  };

  /// REQUIRES: now <= time <= word_limit. O(1) if no popped event is later than `time`, else
  /// O(events). Allocates only when the number of events reaches a new maximum.
  void push(const Node& node, Word now);

  /// Pops the first event if it is not later than `end`; false if there is none. O(1), amortised.
  bool pop(Word end, Node& node);

  /// Makes pop() choose among events of one time at random, by draws from `seed`.
  void shuffle_ties(std::uint64_t seed) noexcept {
    shuffled_ = true;
    rng_ = SeededRng(seed);
  }

  /// Removes the events for which `gone(node)` is true. O(events). Never allocates.
  template <class Gone>
  void erase_if(Gone gone) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      empty(i, [&](const Node& node) { gone(node) ? void(--size_) : append(i, node); });
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// The events that will be popped soon, each listed once, for prefetching.
  [[nodiscard]] std::span<const std::uint64_t> take_coming() noexcept {
    return {coming_.data(), std::exchange(coming_count_, 0)};
  }

 private:
  static constexpr unsigned digit_bits = 8;
  static constexpr std::size_t digits = 256;
  static constexpr std::size_t levels = 7;  // 56 bits; a time has 53
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  // Two cache lines. A bucket is a list of chunks.
  struct alignas(64) Chunk {
    static constexpr std::uint32_t capacity = 7;
    std::array<Node, capacity> nodes;
    std::uint32_t next;
  };
  struct Bucket {
    std::uint32_t head = none;
    std::uint32_t tail = none;
    std::uint32_t first = 0;  // index in the head; earlier ones were popped
    std::uint32_t end = 0;    // index in the tail
  };

  [[nodiscard]] std::size_t bucket_of(Word time) const noexcept;
  [[nodiscard]] Word start_of(std::size_t bucket) const noexcept;
  [[nodiscard]] std::size_t first_bucket() const noexcept;
  void append(std::size_t bucket, const Node& node);
  void mark_empty(std::size_t bucket) noexcept;
  void free_chunk(std::uint32_t chunk) noexcept;
  void take_front(std::size_t bucket, Node& node) noexcept;
  [[nodiscard]] bool take_least(std::size_t bucket, Word end, Node& node) noexcept;
  void swap_front_with_any(const Bucket& bucket) noexcept;
  void spread(std::size_t bucket);
  void rebase(Word now);

  /// Empties the bucket and then calls `each(node)` for every event of it. A chunk is freed before
  /// its events are visited, so that appending them needs no memory.
  template <class Each>
  void empty(std::size_t bucket, Each each) {
    Bucket from = buckets_[bucket];
    if (from.head == none) return;
    mark_empty(bucket);
    for (;;) {
      const Chunk chunk = chunks_[from.head];
      const bool last = from.head == from.tail;
      free_chunk(from.head);
      for (std::uint32_t i = from.first; i < (last ? from.end : Chunk::capacity); ++i) {
        each(chunk.nodes[i]);
      }
      if (last) return;
      from.head = chunk.next;
      from.first = 0;
    }
  }

  std::array<Bucket, levels * digits> buckets_{};
  std::array<std::array<std::uint64_t, digits / 64>, levels> used_{};  // a bit for each bucket
  std::uint32_t used_levels_ = 0;                                      // a bit for each level
  std::uint32_t free_ = none;
  bool shuffled_ = false;
  Word base_ = 0;
  std::size_t size_ = 0;
  std::vector<Chunk> chunks_;
  std::array<std::uint64_t, 256> coming_{};  // more would not stay in the cache until they run
  std::size_t coming_count_ = 0;
  SeededRng rng_{0};
};

}  // namespace sluice::sim
