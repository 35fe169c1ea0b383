// The windows of a request of the sliding windows, and the guards that earlier windows have left.
// The twin of the guards is in backends/redis/lua/sliding_window_decide.lua. Threading: plain
// values.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "src/rules/sliding_window_log.hpp"

namespace sluice::sliding_window {

using Window = Rule::Window;
using Guard = Rule::Guard;

/// The windows of a request.
struct Windows {
  std::array<Window, Rule::max_windows> all;
  Word count = 0;
  Word least = word_limit;  // the smallest limit
  Word most = 0;            // the largest
  Word longest = 0;         // span
  bool good = true;

  explicit Windows(std::span<const Word> table) noexcept {
    good = !table.empty() && table.size() % 2 == 0 && table.size() <= 2 * Rule::max_windows;
    for (std::size_t i = 0; good && i < table.size(); i += 2) {
      const Window window{table[i], table[i + 1]};
      good = window.limit >= 1 && window.limit <= Rule::max_limit && window.span >= 1 &&
             window.span <= Rule::max_span;
      all[static_cast<std::size_t>(count++)] = window;
      least = std::min(least, window.limit);
      most = std::max(most, window.limit);
      longest = std::max(longest, window.span);
    }
  }
  [[nodiscard]] const Window& operator[](Word k) const noexcept {
    return all[static_cast<std::size_t>(k)];
  }
};

/// More intervals than any log has units; with a limit, their product stays below 2^52.
inline constexpr Word many = Word{1} << 35;

constexpr Word ceil_div(Word a, Word b) noexcept { return (a + b - 1) / b; }

/// What keeps an interval of `span` to the larger of `limit` and what the windows allow in it.
inline Window held_to(Word limit, Word span, const Windows& windows) noexcept {
  Window fewest{word_limit, 1};
  Word least = word_limit;
  Word parts = 0;
  for (Word i = 0; i < windows.count; ++i) {
    const Word whole = std::min(ceil_div(span, windows[i].span), many);
    if (whole * windows[i].limit >= least) continue;
    least = whole * windows[i].limit;
    fewest = windows[i];
    parts = whole;
  }
  const Word enough = std::max(ceil_div(limit, fewest.limit), Rule::whole_guard / fewest.limit);
  if (enough < parts) {
    parts = enough;
    span = fewest.span * parts;
  }
  return {std::min(Rule::max_limit, std::max(limit, fewest.limit * parts)), span};
}

/// The guards that bind a request, once its own windows have come into force.
class Guards {
 public:
  /// As in find().
  Guards(const Log& log, const Windows& windows, Word at, bool given_up) noexcept
      : windows_(windows),
        newest_(given_up ? std::min(log.head().newest, at) : log.head().newest),
        at_(at) {
    const Rule::Layout& layout = log.layout();
    changed_ = layout.windows != windows.count;
    for (Word k = 0; k < layout.windows; ++k) {
      const Window old = log.window(k);
      if (k >= windows.count) continue;
      changed_ = changed_ || old.limit != windows[k].limit || old.span != windows[k].span;
    }
    for (Word j = 0; j < layout.guards; ++j) keep(log.guard(j));
    for (Word k = 0; changed_ && k < layout.windows; ++k) {
      const Window old = log.window(k);
      keep({old.limit, old.span, word_limit});
    }
    for (const Guard& guard : all()) {
      most_ = std::max(most_, guard.limit);
      end_ = std::max(end_, guard.until);
    }
  }

  /// The windows are not those that the state was last written under.
  [[nodiscard]] bool changed() const noexcept { return changed_; }
  [[nodiscard]] std::span<const Guard> all() const noexcept { return {all_.data(), count_}; }
  /// The largest limit; 0: there are none.
  [[nodiscard]] Word most() const noexcept { return most_; }
  /// When the last of them ends; 0: there are none.
  [[nodiscard]] Word end() const noexcept { return end_; }

 private:
  void keep(const Guard& old) noexcept {
    if (old.until <= at_) return;
    const Window held =
        changed_ ? held_to(old.limit, old.span, windows_) : Window{old.limit, old.span};
    const Guard guard{std::max(held.limit, windows_.least), held.span,
                      std::min(old.until, newest_ + held.span)};
    if (guard.until > at_ && !has_window(guard)) add(guard);
  }

  /// A window of the same span takes a guard's place, and leaves its own when its time comes.
  [[nodiscard]] bool has_window(const Guard& guard) const noexcept {
    for (Word i = 0; i < windows_.count; ++i) {
      if (windows_[i].span == guard.span && windows_[i].limit <= guard.limit) return true;
    }
    return false;
  }
  /// When a guard ends that decides anything as long as these windows are in force.
  [[nodiscard]] Word decides_until(const Guard& guard) const noexcept {
    for (Word i = 0; i < windows_.count; ++i) {
      if (windows_[i].span >= guard.span && windows_[i].limit <= guard.limit) return 0;
    }
    return guard.until;
  }

  void add(const Guard& guard) noexcept {
    Guard* first = all_.data();
    for (Guard& other : std::span(all_).first(count_)) {
      if (decides_until(other) < decides_until(*first)) first = &other;
      if (other.span != guard.span) continue;
      if (other.limit <= guard.limit && other.until >= guard.until) return;
      if (other.limit < guard.limit || other.until > guard.until) continue;
      other = guard;
      return;
    }
    if (count_ < Rule::max_guards) {
      all_[count_++] = guard;
    } else if (decides_until(guard) > decides_until(*first)) {
      *first = guard;
    }
  }

  const Windows& windows_;
  Word newest_;
  Word at_;
  std::array<Guard, Rule::max_guards> all_;
  std::size_t count_ = 0;
  Word most_ = 0;
  Word end_ = 0;
  bool changed_ = false;
};

}  // namespace sluice::sliding_window
