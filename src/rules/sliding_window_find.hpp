// The parts that the kernels of the sliding windows share: the occupancy of the windows, and the
// words before the ring. Threading: plain values.
#pragma once

#include <algorithm>
#include <array>

#include "src/rules/sliding_window_log.hpp"
#include "src/util/uninitialized_array.hpp"

namespace sluice::sliding_window {

/// The windows before a request.
struct Finding {
  detail::UninitializedArray<Place, Rule::max_windows> places;  // the shortest window first
  std::array<Word, Rule::max_windows> left;  // units that remain before the request
  Word grant = 0;
  Word culprit = -1;  // the window with the longest wait
  Word opens = 0;     // when a full log takes a further entry, if it does not now

  [[nodiscard]] const Place& place(Word r) const noexcept {
    return places.data()[static_cast<std::size_t>(r)];
  }
  [[nodiscard]] Word& left_of(Word k) noexcept { return left[static_cast<std::size_t>(k)]; }
};

/// If a log of `total` entries, the oldest of which is `first`, takes no further one now, nothing
/// remains of the longest window.
inline bool shut_if_full(Finding& found, const Windows& windows, Word first, Word total) noexcept {
  const bool is_full = total >= Rule::max_entries && found.place(windows.count - 1).entry == first;
  if (is_full) found.left_of(windows.ranked(windows.count - 1)) = 0;
  return is_full;
}

/// The places of all windows at the time `at`.
inline Finding find(const Log& log, const Windows& windows, Word at) noexcept {
  Finding found;
  const Place* place = nullptr;
  for (Word r = 0; r < windows.count; ++r) {
    const Word k = windows.ranked(r);
    const Place from = log.remembered(r, place == nullptr ? log.nothing() : *place);
    place = &found.places.make(static_cast<std::size_t>(r),
                               [&] { return log.locate(from, at - windows[k].span); });
    found.left_of(k) = std::max(Word{0}, windows[k].limit - place->units);
  }
  return found;
}

inline void put_head(Effects& effects, const Rule::State& head) noexcept {
  effects.put(0, head.stamp);
  effects.put(1, head.newest);
  effects.put(2, head.capacity);
  effects.put(3, head.next);
  effects.put(4, head.size);
  effects.put(5, head.sequence);
  effects.put(6, head.until);
  effects.put(7, head.blocked);
  effects.put(8, head.places);
  effects.put(9, head.span);
  effects.put(10, head.since);
  effects.put(11, head.older);
  effects.put(12, head.limit);
}

inline void put_place(Effects& effects, Word r, const Place& place) noexcept {
  const auto index = static_cast<std::size_t>(head_words + place_words * r);
  effects.put(index, place.units);
  effects.put(index + 1, place.entry);
  effects.put(index + 2, place.first);
  effects.put(index + 3, place.first_units);
  effects.put(index + 4, std::max(Word{0}, place.edge));
}
/// Calls the places from the r-th on unknown. `places`: how many there are.
inline void forget_places(Effects& effects, Word r, Word places) noexcept {
  if (r >= places) return;
  effects.fill(static_cast<std::size_t>(head_words + place_words * r),
               static_cast<std::size_t>(place_words * (places - r)), 0);
}

inline void put_entry(Effects& effects, Word places, Word slot, const Entry& entry) noexcept {
  const auto index = static_cast<std::size_t>(head_words + place_words * places + 2 * slot);
  effects.put(index, entry.time);
  effects.put(index + 1, entry.units);
}

/// The window with the least remaining.
inline Word least_left(const Finding& found, const Windows& windows) noexcept {
  Word part = 0;
  for (Word k = 0; k < windows.count; ++k) {
    if (found.left[static_cast<std::size_t>(k)] < found.left[static_cast<std::size_t>(part)]) {
      part = k;
    }
  }
  return part;
}

inline void tell_left(Effects& effects, const Windows& windows, const Finding& found) noexcept {
  for (Word k = 0; k < windows.count; ++k)
    effects.add_output(found.left[static_cast<std::size_t>(k)]);
}

/// The microseconds from `now` until entries up to `newest` have left all windows, and `block` has
/// ended.
inline Word clear_after(const Windows& windows, Word newest, Word block, Word now) noexcept {
  return std::clamp(std::max(newest + windows.longest, block) - now, Word{0}, word_limit);
}

template <class T>
T args_of(const Arguments& a) noexcept {
  return detail::unpack<T>(a);
}

constexpr Verdict failed(Word status) noexcept { return {status, 0, 0, 0}; }

}  // namespace sluice::sliding_window
