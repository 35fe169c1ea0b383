// What the pictures have in common: a store in virtual time, and lists of points.
// Threading: single-threaded.
#pragma once

#include <memory>
#include <ostream>
#include <string_view>
#include <vector>

#include "sluice/rng.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::pictures {

struct World {
  VirtualClock clock{};
  std::unique_ptr<Store> store = make_virtual_store(clock);
  SeededRng rng{2026};

  void advance_to(double seconds) {
    clock.set(VirtualClock::default_start + Span{static_cast<Word>(seconds * 1e6 + 0.5)});
  }
  /// Calls `live(tick, seconds)` for ticks 0 to `last`, at their times.
  template <class Live>
  void tick_until(int last, double step, Live live) {
    for (int tick = 0; tick <= last; ++tick) {
      advance_to(tick * step);
      live(tick, tick * step);
    }
  }
  /// True about `rate` times a second, asked every `step` seconds.
  bool happens(double rate, double step) {
    return static_cast<double>(rng.below(1'000'000)) < rate * step * 1e6;
  }
};

/// A block of the data: rows of numbers.
class Block {
 public:
  void add(std::vector<double> row) { rows_.push_back(std::move(row)); }
  void print(std::ostream& out, std::string_view columns) const {
    out << "# " << columns << '\n';
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) out << (i == 0 ? "" : "\t") << row[i];
      out << '\n';
    }
    out << "\n\n";
  }

 private:
  std::vector<std::vector<double>> rows_;
};

}  // namespace sluice::pictures
