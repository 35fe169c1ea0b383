// The parts that the kernels of the sliding windows share: the windows of a request, their
// occupancy, and the words before the log. Threading: plain values.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "src/rules/sliding_window_log.hpp"
#include "src/util/uninitialized_array.hpp"

namespace sluice::sliding_window {

/// The windows of a request.
struct Windows {
  std::array<Rule::Window, Rule::max_windows> all;
  Word count = 0;
  Word least = word_limit;  // the smallest limit
  Word most = 0;            // the largest
  Word longest = 0;         // span
  bool good = true;

  explicit Windows(std::span<const Word> table) noexcept {
    good = !table.empty() && table.size() % 2 == 0 && table.size() <= 2 * Rule::max_windows;
    for (std::size_t i = 0; good && i < table.size(); i += 2) {
      const Rule::Window window{table[i], table[i + 1]};
      good = window.limit >= 1 && window.limit <= Rule::max_limit && window.span >= 1 &&
             window.span <= Rule::max_span;
      all[static_cast<std::size_t>(count++)] = window;
      least = std::min(least, window.limit);
      most = std::max(most, window.limit);
      longest = std::max(longest, window.span);
    }
  }
  [[nodiscard]] const Rule::Window& operator[](Word k) const noexcept {
    return all[static_cast<std::size_t>(k)];
  }
};

/// The state of each window before a request.
struct Finding {
  detail::UninitializedArray<Place, Rule::max_windows> places;
  std::array<Word, Rule::max_windows> left;  // units that remain before the request
  Word grant = 0;
  Word culprit = -1;  // the window with the longest wait
};

/// `block`: the end of a block, or 0. `at`: the time of the decision. `given_up`: the log is too
/// far ahead of the clock.
inline Finding find(const Log& log, const Windows& windows, Word block, Word cost, Word at,
                    bool given_up) noexcept {
  Finding found;
  found.grant = given_up ? at : std::max(at, log.head().newest);
  Word latest = 0;
  for (Word k = 0; k < windows.count; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const auto [limit, span] = windows[k];
    const Place& place =
        found.places.make(i, [&, span = span] { return log.locate(log.remembered(k), at - span); });
    found.left[i] = std::max(Word{0}, limit - place.count);
    if (given_up) {
      found.left[i] = std::max(found.left[i], cost);
    } else if (place.count + cost > limit) {
      const Word age = limit - cost;
      const Word room = (age == place.count - 1 ? place.first : log.unit(age)) + span;
      if (room > latest) {
        latest = room;
        found.culprit = k;
      }
    }
  }
  if (block > latest) {
    latest = block;
    found.culprit = windows.count;
  }
  found.grant = std::max(found.grant, latest);
  return found;
}

/// Sets `count` words of a ring to `value`, from `slot`, which may be below 0, towards newer units.
inline void write(Effects& effects, Word base, Word capacity, Word slot, Word count,
                  Word value) noexcept {
  if (slot < 0) slot += capacity;
  const Word first = std::min(count, capacity - slot);
  effects.fill(static_cast<std::size_t>(base + slot), static_cast<std::size_t>(first), value);
  effects.fill(static_cast<std::size_t>(base), static_cast<std::size_t>(count - first), value);
}
inline void write(Effects& effects, const Log& log, Word slot, Word count, Word value) noexcept {
  write(effects, log.base(), log.capacity(), slot, count, value);
}

inline void put_head(Effects& effects, const Rule::State& head) noexcept {
  effects.put(0, head.stamp);
  effects.put(1, head.newest);
  effects.put(2, head.capacity);
  effects.put(3, head.next);
  effects.put(4, head.size);
  effects.put(5, head.dropped);
  effects.put(6, head.span);
  effects.put(7, head.layout);
  effects.put(8, head.since);
  effects.put(9, head.older);
  effects.put(10, head.until);
}

/// Invalidates the places from the k-th on.
inline void forget_places(Effects& effects, const Log& log, Word k) noexcept {
  if (k >= log.layout().places) return;
  effects.fill(static_cast<std::size_t>(head_words + place_words * k),
               static_cast<std::size_t>(place_words * (log.layout().places - k)), unknown);
}

/// Invalidates all places; a block stays.
inline void forget_places(Effects& effects, const Log& log, Word k, Word block) noexcept {
  forget_places(effects, log, k);
  if (block > 0) effects.put(static_cast<std::size_t>(block_word), block);
}

/// What remains of each window after `taken` units; returns the one with the least.
inline Word subtract(Finding& found, const Windows& windows, Word taken) noexcept {
  Word part = 0;
  for (Word k = 0; k < windows.count; ++k) {
    Word& left = found.left[static_cast<std::size_t>(k)];
    left = std::max(Word{0}, left - taken);
    if (left < found.left[static_cast<std::size_t>(part)]) part = k;
  }
  return part;
}

inline void tell_left(Effects& effects, const Windows& windows, const Finding& found) noexcept {
  for (Word k = 0; k < windows.count; ++k)
    effects.add_output(found.left[static_cast<std::size_t>(k)]);
}

/// The microseconds from `now` until units up to `newest` have left all windows, and `block` has
/// ended.
inline Word clear_after(const Windows& windows, Word newest, Word block, Word now) noexcept {
  return std::clamp(std::max(newest + windows.longest, block) - now, Word{0}, word_limit);
}

template <class T>
T args_of(const Arguments& a) noexcept {
  return {a[0], a[1], a[2], a[3]};
}

constexpr Verdict failed(Word status) noexcept { return {status, 0, 0, 0}; }

}  // namespace sluice::sliding_window
