// The log of the sliding windows: the windows of a request, the entries by number, and the places
// of the windows. Its twin is in backends/redis/lua/rules/sliding_window.lua. Threading: plain
// values.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "sluice/rules/sliding_window.hpp"

namespace sluice::sliding_window {

using Rule = SlidingWindowRule;
using Place = Rule::Place;

inline constexpr Word head_words = 13;
inline constexpr Word place_words = 5;

/// Reads all words that the twin reads at its start, so that both detect the same corrupt states.
inline void judge_head(const StateView& state) noexcept {
  for (std::size_t i = 0; i < head_words + place_words; ++i) (void)state[i];
}

/// The windows of a request.
struct Windows {
  std::array<Rule::Window, Rule::max_windows> all;
  std::array<Word, Rule::max_windows> order;  // shortest first
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
      add(window);
    }
  }
  [[nodiscard]] const Rule::Window& operator[](Word k) const noexcept {
    return all[static_cast<std::size_t>(k)];
  }
  /// The window that is the r-th by its span.
  [[nodiscard]] Word ranked(Word r) const noexcept { return order[static_cast<std::size_t>(r)]; }

 private:
  void add(const Rule::Window& window) noexcept {
    std::size_t r = static_cast<std::size_t>(count);
    for (; r > 0 && (*this)[order[r - 1]].span > window.span; --r) order[r] = order[r - 1];
    order[r] = count;
    all[static_cast<std::size_t>(count++)] = window;
    least = std::min(least, window.limit);
    most = std::max(most, window.limit);
    longest = std::max(longest, window.span);
  }
};

/// What an acquisition that was granted has left: its time and its units.
struct Entry {
  Word time;
  Word units;
};

class Log {
 public:
  Log(const StateView& state, const Windows& windows, Word now) noexcept : state_(state) {
    head_ = {state[0], state[1], state[2], state[3],  state[4],  state[5], state[6],
             state[7], state[8], state[9], state[10], state[11], state[12]};
    judge_head(state);
    fresh_ = head_.capacity == 0;
    if (!fresh_ && !is_sound()) state.call_corrupt();
    if (fresh_ || state.is_corrupt() || now >= std::max(head_.until, head_.blocked)) {
      fresh_ = true;
      head_ = {.capacity = std::min(Rule::first_entries, windows.most),
               .sequence = 1,
               .places = windows.count};
    }
  }

  [[nodiscard]] const Rule::State& head() const noexcept { return head_; }
  [[nodiscard]] bool is_fresh() const noexcept { return fresh_; }
  /// The number of the oldest entry in the ring.
  [[nodiscard]] Word oldest() const noexcept { return head_.sequence - head_.size; }
  /// That of the oldest entry, assumed or not.
  [[nodiscard]] Word first() const noexcept { return oldest() - assumed_; }
  [[nodiscard]] Word total() const noexcept { return head_.size + assumed_; }
  [[nodiscard]] Word assumed() const noexcept { return assumed_; }
  /// The time of the newest entry, or 0.
  [[nodiscard]] Word newest() const noexcept {
    return head_.size > 0 || assumed_ == 0 ? head_.newest : intervals_[0].time;
  }

  /// The index of an entry in the ring. REQUIRES: it is there, or will be the next.
  [[nodiscard]] Word slot(Word number) const noexcept {
    const Word at = head_.next - (head_.sequence - number);
    return at < 0 ? at + head_.capacity : at;
  }
  /// REQUIRES: number is first() to sequence - 1.
  [[nodiscard]] Entry entry(Word number) const noexcept {
    if (number < oldest()) return intervals_[static_cast<std::size_t>(oldest() - 1 - number)];
    const Word at = head_words + place_words * head_.places + 2 * slot(number);
    return {word(at), word(at + 1)};
  }

  /// Where the longest window becomes longer: assumes entries for those that the ring has lost.
  /// `edge`: what is older has left that window.
  void assume(const Windows& windows, Word edge) noexcept {
    const Word most = std::min({Rule::max_assumed, oldest() - 1, Rule::max_entries - head_.size});
    if (fresh_ || windows.longest <= head_.span || most < 1) return;
    for (Word time = lost_before(); assumed_ < most && time > edge; time = ring_before(time)) {
      const bool stands_for_more = assumed_ == most - 1 && most < oldest() - 1;
      intervals_[static_cast<std::size_t>(assumed_++)] = {
          std::max(Word{0}, time),
          stands_for_more ? std::max(head_.limit, windows.most) : head_.limit};
    }
  }

  /// The place of a window that holds nothing; those of any edge can be found from it.
  [[nodiscard]] Place nothing() const noexcept { return {0, head_.sequence, 0, 0, word_limit}; }
  /// The stored place of the r-th window, or `other` if it is unknown.
  [[nodiscard]] Place remembered(Word r, const Place& other) const noexcept {
    if (fresh_ || r >= head_.places) return other;
    const Word at = head_words + place_words * r;
    const Place place{word(at), word(at + 1), word(at + 2), word(at + 3), word(at + 4)};
    if (place.entry == 0) return other;
    const bool is_empty = place.entry == head_.sequence;
    if (place.entry < oldest() || place.entry > head_.sequence || (is_empty && place.units > 0)) {
      state_.call_corrupt();
      return other;
    }
    return place;
  }
  /// The place of the entries later than `edge`.
  [[nodiscard]] Place locate(Place place, Word edge) const noexcept {
    if (newest() <= edge) return {0, head_.sequence, 0, 0, edge};
    if (edge < place.edge || assumed_ > 0) {  // no stored place has seen what is assumed
      while (place.entry > first() && place.units <= word_limit) {
        const Entry before = entry(place.entry - 1);
        if (before.time <= edge) break;
        place = {place.units + before.units, place.entry - 1, before.time, before.units, edge};
      }
    }
    while (place.entry < head_.sequence && place.first <= edge) {
      place.units -= place.first_units;
      const Entry next = ++place.entry < head_.sequence ? entry(place.entry) : Entry{0, 0};
      place.first = next.time;
      place.first_units = next.units;
    }
    if (place.units < 0 || place.units > word_limit) {
      state_.call_corrupt();
      place.units = 0;
    }
    place.edge = edge;
    return place;
  }
  /// The time of the first entry within a place with which `excess` units have left.
  [[nodiscard]] Word leaving(const Place& place, Word excess) const noexcept {
    Entry leaves{place.first, place.first_units};
    for (Word number = place.entry + 1; leaves.units < excess && number < head_.sequence;
         ++number) {
      excess -= leaves.units;
      leaves = entry(number);
    }
    return leaves.time;
  }
  /// The entries later than `at`, as one.
  struct Later {
    Word count = 0;
    Word units = 0;
  };
  [[nodiscard]] Later later_than(Word at) const noexcept {
    Later later;
    while (later.count < head_.size) {
      const Entry each = entry(head_.sequence - 1 - later.count);
      if (each.time <= at) break;
      later = {later.count + 1, std::min(later.units + each.units, word_limit)};
    }
    return later;
  }
  /// The number behind the newest entry that has units, among those below `number`.
  [[nodiscard]] Word behind_units(Word number) const noexcept {
    while (number > oldest() && entry(number - 1).units == 0) --number;
    return number;
  }

 private:
  [[nodiscard]] bool is_sound() const noexcept {
    return head_.capacity <= Rule::max_entries && head_.next < head_.capacity &&
           head_.size <= head_.capacity && head_.sequence > head_.size && head_.places >= 1 &&
           head_.places <= static_cast<Word>(Rule::max_windows) && head_.span <= Rule::max_span &&
           head_.older <= Rule::max_span && head_.limit >= 1 && head_.limit <= Rule::max_limit &&
           head_.blocked <= head_.stamp + Rule::max_block;
  }

  /// The latest time of what lies a full interval before `time`.
  [[nodiscard]] Word ring_before(Word time) const noexcept {
    return std::max(time - head_.span, std::min(time, head_.since) - head_.older);
  }
  /// The latest time of what the ring has lost: each entry had left the longest window, and as many
  /// units as that admits are newer.
  [[nodiscard]] Word lost_before() const noexcept {
    Word time = ring_before(head_.stamp);
    Word units = 0;
    for (Word number = oldest(); number < head_.sequence; ++number) {
      const Entry each = entry(number);
      if (number == oldest()) time = std::min(time, each.time);
      units += each.units;
      if (units >= head_.limit) return std::min(time, ring_before(each.time));
    }
    return time;
  }

  [[nodiscard]] Word word(Word index) const noexcept {
    return state_[static_cast<std::size_t>(index)];
  }

  const StateView& state_;
  Rule::State head_;
  bool fresh_ = false;
  Word assumed_ = 0;
  std::array<Entry, Rule::max_assumed> intervals_;  // the newest first
};

}  // namespace sluice::sliding_window
