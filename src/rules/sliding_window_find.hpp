// What the kernels of the sliding windows have in common: the windows of a request, what it finds
// in each and in the guards, and the words before the log. Threading: plain values.
#pragma once

#include <algorithm>
#include <array>

#include "src/rules/sliding_window_guards.hpp"
#include "src/util/uninitialized_array.hpp"

namespace sluice::sliding_window {

/// What a request finds, window by window, and then guard by guard.
struct Finding {
  static constexpr std::size_t most = Rule::max_windows + Rule::max_guards;
  detail::UninitializedArray<Place, most> places;
  std::array<Word, most> left;  // what remains, before the request
  Word grant = 0;
  Word culprit = -1;  // the one that makes it wait longest
};

/// `block`: until when the key is blocked, or 0. `at`: the instant that the rule sees. `given_up`:
/// the log lies too far ahead of the clock.
inline Finding find(const Log& log, const Windows& windows, std::span<const Guard> guards,
                    Word block, Word cost, Word at, bool given_up) noexcept {
  Finding found;
  found.grant = given_up ? at : std::max(at, log.head().newest);
  Word latest = 0;
  for (Word k = 0; k < windows.count + static_cast<Word>(guards.size()); ++k) {
    const auto i = static_cast<std::size_t>(k);
    const bool is_guard = k >= windows.count;
    const Guard* const guard =
        is_guard ? &guards[static_cast<std::size_t>(k - windows.count)] : nullptr;
    const Word limit = is_guard ? guard->limit : windows[k].limit;
    const Word span = is_guard ? guard->span : windows[k].span;
    const Place& place = found.places.make(i, [&] {
      return log.locate(is_guard ? Place{unknown, 0, 0} : log.remembered(k), at - span);
    });
    found.left[i] = std::max(Word{0}, limit - place.count);
    if (given_up) {
      found.left[i] = std::max(found.left[i], cost);
    } else if (place.count + cost > limit) {
      const Word age = limit - cost;
      Word room = (age == place.count - 1 ? place.first : log.unit(age)) + span;
      if (is_guard) room = std::min(room, guard->until);
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

/// `count` words of a ring become `value`, from `slot`, which may be below 0, towards newer units.
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
}

/// Nothing is known of the places from the k-th.
inline void forget_places(Effects& effects, const Log& log, Word k) noexcept {
  if (k >= log.layout().places) return;
  effects.fill(static_cast<std::size_t>(head_words + place_words * k),
               static_cast<std::size_t>(place_words * (log.layout().places - k)), unknown);
}

/// Nothing is known of any place; a block that stands stays.
inline void forget_places(Effects& effects, const Log& log, Word k, Word block) noexcept {
  forget_places(effects, log, k);
  if (block > 0) effects.put(static_cast<std::size_t>(block_word), block);
}

/// What remains of each of the first `count`, once `taken` is taken; which of them has the least.
inline Word subtract(Finding& found, Word count, Word taken) noexcept {
  Word part = 0;
  for (Word k = 0; k < count; ++k) {
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

/// Microseconds from `now` until units up to `newest` have left all windows, and no guard binds.
inline Word clear_after(const Windows& windows, Word newest, Word end, Word now) noexcept {
  return std::clamp(std::max(newest + windows.longest, end) - now, Word{0}, word_limit);
}

template <class T>
T args_of(const Arguments& a) noexcept {
  return {a[0], a[1], a[2], a[3]};
}

constexpr Verdict failed(Word status) noexcept { return {status, 0, 0, 0}; }

}  // namespace sluice::sliding_window
