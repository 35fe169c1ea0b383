#include "src/observe/heavy_hitters.hpp"

#include <utility>

namespace sluice::detail {

HeavyHitters::HeavyHitters(std::size_t counters, std::size_t longest) : counters_(counters) {
  for (Counter& counter : counters_) {
    counter.limiter.reserve(longest);
    counter.key.reserve(longest);
  }
  heap_.reserve(counters);
  std::size_t size = 4;
  while (size < 2 * counters) size *= 2;
  table_.assign(size, none);
}

void HeavyHitters::add(std::string_view limiter, std::string_view key,
                       std::uint64_t hash) noexcept {
  std::uint32_t index = find(limiter, key, hash);
  if (index == none && heap_.size() < counters_.size()) {
    index = static_cast<std::uint32_t>(heap_.size());
    counters_[index].place = index;
    heap_.push_back(index);
    name(index, limiter, key, hash);
    // A new counter of 0 belongs to the top.
    for (std::uint32_t place = index; place > 0; place = (place - 1) / 2) {
      if (counters_[heap_[(place - 1) / 2]].count == 0) break;
      swap_places(place, (place - 1) / 2);
    }
  } else if (index == none) {
    index = heap_.front();
    Counter& least = counters_[index];
    erase(index);
    least.error = least.count;
    name(index, limiter, key, hash);
  }
  ++counters_[index].count;
  sink(counters_[index].place);
}

std::uint32_t HeavyHitters::find(std::string_view limiter, std::string_view key,
                                 std::uint64_t hash) const noexcept {
  for (std::size_t slot = slot_of(hash); table_[slot] != none; slot = slot_of(slot + 1)) {
    const Counter& counter = counters_[table_[slot]];
    if (counter.hash == hash && counter.key == key && counter.limiter == limiter)
      return table_[slot];
  }
  return none;
}

void HeavyHitters::name(std::uint32_t index, std::string_view limiter, std::string_view key,
                        std::uint64_t hash) noexcept {
  counters_[index].limiter.assign(limiter);
  counters_[index].key.assign(key);
  counters_[index].hash = hash;
  insert(index);
}

void HeavyHitters::insert(std::uint32_t index) noexcept {
  std::size_t slot = slot_of(counters_[index].hash);
  while (table_[slot] != none) slot = slot_of(slot + 1);
  table_[slot] = index;
}

/// Moves those behind it, so that none is separated from its own slot by an empty one.
void HeavyHitters::erase(std::uint32_t index) noexcept {
  std::size_t hole = slot_of(counters_[index].hash);
  while (table_[hole] != index) hole = slot_of(hole + 1);
  for (std::size_t slot = slot_of(hole + 1); table_[slot] != none; slot = slot_of(slot + 1)) {
    const std::size_t home = slot_of(counters_[table_[slot]].hash);
    if (slot_of(slot - home) < slot_of(slot - hole)) continue;
    table_[hole] = table_[slot];
    hole = slot;
  }
  table_[hole] = none;
}

void HeavyHitters::swap_places(std::uint32_t a, std::uint32_t b) noexcept {
  std::swap(heap_[a], heap_[b]);
  counters_[heap_[a]].place = a;
  counters_[heap_[b]].place = b;
}

void HeavyHitters::sink(std::uint32_t place) noexcept {
  const auto size = static_cast<std::uint32_t>(heap_.size());
  const auto count = [this](std::uint32_t at) { return counters_[heap_[at]].count; };
  for (;;) {
    std::uint32_t least = place;
    for (const std::uint32_t child : {2 * place + 1, 2 * place + 2}) {
      if (child < size && count(child) < count(least)) least = child;
    }
    if (least == place) return;
    swap_places(place, least);
    place = least;
  }
}

}  // namespace sluice::detail
