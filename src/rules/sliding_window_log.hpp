// The log of the sliding windows: units by age, and the search for the edge of a window. Its twin
// is in backends/redis/lua/rules/sliding_window.lua. Threading: plain values.
#pragma once

#include <algorithm>

#include "sluice/rules/sliding_window.hpp"

namespace sluice::sliding_window {

using Rule = SlidingWindowRule;
using Place = Rule::Place;

inline constexpr Word head_words = 11;
inline constexpr Word place_words = 3;
/// The count of an invalid place.
inline constexpr Word unknown = word_limit;
/// The word with the end of a block: `before` of the first place, which is then invalid.
inline constexpr Word block_word = head_words + 1;

/// Reads all words that the twin reads at its start, so that both detect the same corrupt states.
inline void judge_head(const StateView& state) noexcept {
  for (std::size_t i = 0; i < head_words + place_words; ++i) (void)state[i];
}

/// A log with the capacity that the request needs: dropped units that this capacity would have held
/// are replaced by assumed units (SlidingWindowRule::max_assumed).
class Log {
 public:
  Log(const StateView& state, Word wanted, Word windows, Word now) noexcept : state_(state) {
    head_ = {state[0], state[1], state[2], state[3], state[4], state[5],
             state[6], state[7], state[8], state[9], state[10]};
    judge_head(state);
    layout_ = {head_.layout % 16, head_.layout / 16};
    fresh_ = head_.capacity == 0;
    if (!fresh_ && !is_sound()) state.call_corrupt();
    if (fresh_ || state.is_corrupt() || is_forgotten(now)) {
      fresh_ = true;
      head_ = {0, 0, wanted, 0, 0, 0, 0, windows, 0, 0, 0};
      layout_ = {windows, 0};
    }
    capacity_ = std::max(wanted, head_.capacity);
    if (grows() && head_.dropped > 0) {
      total_ = head_.size + std::min(head_.dropped, capacity_ - head_.size);
      oldest_ = unit(head_.size - 1);
    } else {
      total_ = head_.size;
    }
  }

  [[nodiscard]] const Rule::State& head() const noexcept { return head_; }
  [[nodiscard]] const Rule::Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] bool is_fresh() const noexcept { return fresh_; }
  /// The words of the ring after the request.
  [[nodiscard]] Word capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool grows() const noexcept { return capacity_ > head_.capacity; }
  /// The number of units, including the assumed ones.
  [[nodiscard]] Word total() const noexcept { return total_; }
  /// The index of the ring in the state.
  [[nodiscard]] Word base() const noexcept { return head_words + place_words * layout_.places; }

  /// The end of a block, which may have passed; 0: none.
  [[nodiscard]] Word block_end() const noexcept {
    return layout_.blocks == 0 ? 0 : word(block_word);
  }

  /// The time of a unit. REQUIRES: age < total().
  [[nodiscard]] Word unit(Word age) const noexcept {
    if (age < head_.size) return word(base() + slot(age));
    return assumed((age - head_.size) / head_.capacity);
  }
  /// The latest possible time of a unit that is a full ring older than one of at most `time`.
  [[nodiscard]] Word ring_before(Word time) const noexcept {
    return std::max(time - head_.span, std::min(time, head_.since) - head_.older);
  }
  /// The latest possible time of the units before the log, `interval` full rings older.
  [[nodiscard]] Word assumed(Word interval) const noexcept {
    Word time = std::min(oldest_, ring_before(head_.newest));
    for (Word ring = std::min(interval, Rule::max_assumed - 1); ring > 0; --ring) {
      time = ring_before(time);
    }
    return std::max(Word{0}, time);
  }

  /// The stored place of the k-th window. It was found without the assumed units.
  [[nodiscard]] Place remembered(Word k) const noexcept {
    if (k >= layout_.places || fresh_ || total_ > head_.size) return {unknown, 0, 0};
    const Word at = head_words + place_words * k;
    return {word(at), word(at + 1), word(at + 2)};
  }

  /// The number of units later than `edge`. From a valid place, without reading the log.
  [[nodiscard]] Place locate(const Place& from, Word edge) const noexcept {
    if (from.count > total_) return locate({0, total_ > 0 ? head_.newest : 0, 0}, edge);
    if (from.count > 0 && from.first <= edge) return fewer(from, edge);
    if (from.before > edge && from.count < total_) return more(from.count, edge);
    return from;
  }

 private:
  [[nodiscard]] bool is_sound() const noexcept {
    return head_.capacity <= Rule::max_limit && head_.next < head_.capacity &&
           head_.size <= head_.capacity && layout_.places >= 1 &&
           layout_.places <= static_cast<Word>(Rule::max_windows) && head_.span <= Rule::max_span &&
           head_.older <= Rule::max_span && (head_.dropped == 0 || head_.size == head_.capacity) &&
           (layout_.blocks == 0 || is_sound_block());
  }
  [[nodiscard]] bool is_sound_block() const noexcept {
    return layout_.blocks == 1 && word(head_words) == unknown &&
           word(block_word) <= head_.stamp + Rule::max_block;
  }

  [[nodiscard]] bool is_forgotten(Word now) const noexcept {
    return now >= std::max(head_.until, block_end());
  }

  [[nodiscard]] Word word(Word index) const noexcept {
    return state_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] Word slot(Word age) const noexcept {
    const Word at = head_.next - 1 - age;
    return at < 0 ? at + head_.capacity : at;
  }

  /// The oldest unit counted by `from` has left. Usually all units have, or all but the newest, or
  /// one to four: these cases are checked side by side.
  [[nodiscard]] Place fewer(const Place& from, Word edge) const noexcept {
    if (head_.newest <= edge) return {0, head_.newest, 0};
    const Word high = from.count - 1;  // this age has left
    if (high == 1) return {1, from.first, head_.newest};
    const Word at = high > 0 && high <= head_.size ? slot(high - 1) : head_.capacity;
    if (high < 2 || head_.capacity - at < 4) return fewer_by_run(from, edge);
    const Word a = word(base() + at);
    const Word b = word(base() + at + 1);
    const Word c = word(base() + at + 2);
    const Word d = word(base() + at + 3);
    if (a > edge) return {high, from.first, a};
    if (b > edge) return {high - 1, a, b};
    if (c > edge && high > 2) return {high - 2, b, c};
    if (d > edge && high > 3) return {high - 3, c, d};
    return fewer_by_run(from, edge);
  }

  /// The same for more units: up to eight at once, then by bisection.
  [[nodiscard]] Place fewer_by_run(const Place& from, Word edge) const noexcept {
    Word high = from.count - 1;  // this age has left
    Word before = from.first;
    if (high > 0 && high <= head_.size) {
      const Word at = slot(high - 1);
      const Word run = std::min({Word{8}, high, head_.capacity - at});
      std::array<Word, 8> times;
      for (Word i = 0; i < run; ++i) times[static_cast<std::size_t>(i)] = word(base() + at + i);
      for (Word i = 0; i < run; ++i) {
        const Word time = times[static_cast<std::size_t>(i)];
        if (time > edge) return {high, before, time};
        before = time;
        --high;
      }
    }
    return between(0, high, edge);
  }

  /// The newest unit that is not counted is within the window.
  [[nodiscard]] Place more(Word low, Word edge) const noexcept {
    Word step = 1;
    while (low + step <= total_ && unit(low + step - 1) > edge) {
      low += step;
      step *= 2;
    }
    return between(low, std::min(low + step - 1, total_), edge);
  }

  /// Ages below `low` are within the window, `high` and above are not.
  [[nodiscard]] Place between(Word low, Word high, Word edge) const noexcept {
    while (low < high) {
      const Word middle = (low + high) / 2;
      if (unit(middle) > edge) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return {low, low < total_ ? unit(low) : 0, low > 0 ? unit(low - 1) : 0};
  }

  const StateView& state_;
  Rule::State head_;
  Rule::Layout layout_;
  bool fresh_ = false;
  Word capacity_ = 0;
  Word total_ = 0;
  Word oldest_ = 0;
};

}  // namespace sluice::sliding_window
