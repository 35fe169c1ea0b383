// The log that the models of the sliding windows share: every grant with its number, time and
// units, also those that the ring of a store has lost. Threading: one thread.
#pragma once

#include <algorithm>
#include <vector>

#include "sluice/rules/sliding_window.hpp"

namespace sluice::test {

/// `Entry` has number, time, units, and its own units: those without what was charged beyond the
/// limits.
template <class Entry>
class WindowLog {
 public:
  std::vector<Entry> entries;  // by time; a number is known again while its entry is here

  [[nodiscard]] Word newest() const { return entries.empty() ? 0 : entries.back().time; }
  [[nodiscard]] Word held(Word after) const {
    Word sum = 0;
    for (const Entry& entry : entries) sum += entry.time > after ? entry.units : 0;
    return sum;
  }
  /// The ring has written over some entries, since they had left the longest window.
  [[nodiscard]] bool has_lost() const { return std::ssize(entries) > ring_size_; }
  [[nodiscard]] bool is_open() const { return ring_ > 0; }

  /// A write under windows of which the largest admits `most`, be it of no entry.
  void open(Word most) {
    if (ring_ == 0) ring_ = std::min(SlidingWindowRule::first_entries, most);
  }
  /// A full log doubles while its oldest entry is later than `edge`, and loses it when it is not.
  /// Returns the number.
  Word add(Entry entry, Word edge, Word most) {
    if (ring_size_ < ring_) {
      ++ring_size_;
    } else if (entries[entries.size() - size()].time > edge) {
      ring_ = ring_ < most && most < 2 * ring_ ? most : 2 * ring_;
      ++ring_size_;
    }
    entry.number = entries.empty() ? 1 + lost_ : entries.back().number + 1;
    entries.push_back(entry);
    return entry.number;
  }
  [[nodiscard]] Entry* find(Word number, Word time) {
    const auto found = std::ranges::find_if(
        entries, [&](const Entry& entry) { return entry.number == number && entry.time == time; });
    return found == entries.end() ? nullptr : &*found;
  }
  Word take(Entry& entry, Word most) {
    const Word units = std::min(entry.units, most);
    entry.units -= units;
    entry.own = std::min(entry.own, entry.units);
    return units;
  }
  /// Newest entries without units are in nobody's way.
  void trim() {
    while (ring_size_ > 0 && entries.back().units == 0) drop_newest();
  }
  /// Of the newest entries later than `edge`.
  Word reward(Word most, Word edge) {
    Word taken = 0;
    for (auto entry = entries.rbegin(); entry != entries.rend() && entry->time > edge; ++entry) {
      taken += take(*entry, most - taken);
    }
    if (taken > 0) trim();
    return taken;
  }
  /// Takes out what the log has lost: it matters only if the clock is set back far.
  void lose() {
    if (!entries.empty()) lost_ = entries.back().number - ring_size_;
    entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(size()));
  }
  /// Takes out what is later than `now`. Returns its units.
  Word cut(Word now) {
    Word units = 0;
    while (ring_size_ > 0 && newest() > now) {
      units += entries.back().units;
      drop_newest();
    }
    return units;
  }

 private:
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(ring_size_); }
  void drop_newest() {
    entries.pop_back();
    --ring_size_;
  }

  Word ring_ = 0;       // entries that the log has room for
  Word ring_size_ = 0;  // that it has; all others have left
  Word lost_ = 0;       // numbers of entries that were lost and taken out here
};

}  // namespace sluice::test
