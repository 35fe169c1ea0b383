// The credit of threads at one bound key: units that a thread spends without a lock, and whose
// cache line it has for itself. Threading: any member from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "sluice/clock.hpp"

namespace sluice::prefetch {

/// A number for each thread; two may have the same one modulo Credit::cells.
[[nodiscard]] inline unsigned thread_number() noexcept {
  static std::atomic<unsigned> last{0};
  static thread_local unsigned own = 0;
  if (own == 0) own = last.fetch_add(1, std::memory_order_relaxed) + 1;  // only to differ
  return own;
}

class Credit {
 public:
  static constexpr std::size_t cells = 16;
  static constexpr Word max_units = (Word{1} << 20) - 1;

  struct Units {
    Word count = 0;
    Time until{};
  };

  /// Spends `cost` of the calling thread's units if their time is not over at any instant that the
  /// coarse clock may mean. Returns what is left of them, or -1.
  [[nodiscard]] Word spend(Word cost, Time coarse) noexcept {
    Cell& cell = own();
    // The words are numbers, which publish nothing: their order does not matter.
    std::uint64_t word = cell.word.load(std::memory_order_relaxed);
    const Word latest = to_word(coarse) + Clock::coarse_lag.count();
    do {
      const Word count = static_cast<Word>(word >> tick_bits);
      const Word until = static_cast<Word>(word & tick_mask) << tick_shift;
      const bool set_back = latest < cell.since.load(std::memory_order_relaxed);
      if (count < cost || latest >= until || set_back) return -1;
    } while (!cell.word.compare_exchange_weak(
        word, word - (static_cast<std::uint64_t>(cost) << tick_bits), std::memory_order_relaxed));
    return static_cast<Word>(word >> tick_bits) - cost;
  }

  /// Gives units to the calling thread; returns those that it had.
  Units give(const Units& units, Time now) noexcept {
    Cell& cell = own();
    cell.since.store(to_word(now), std::memory_order_relaxed);
    return unpack(cell.word.exchange(pack(units), std::memory_order_relaxed));
  }
  /// Takes the units of one of the cells.
  Units take(std::size_t cell) noexcept {
    return unpack(cells_[cell].word.exchange(0, std::memory_order_relaxed));
  }

  /// What decisions tell: what remains elsewhere, when nothing is spent any more, and the store's
  /// time minus this one's.
  std::atomic<Word> remaining{0};
  std::atomic<Word> clear_at{0};
  std::atomic<Word> ahead{0};

 private:
  // The units in the upper bits; below them the time until when, in 1024 us, rounded down.
  static constexpr unsigned tick_bits = 44;
  static constexpr unsigned tick_shift = 10;
  static constexpr std::uint64_t tick_mask = (std::uint64_t{1} << tick_bits) - 1;

  struct alignas(64) Cell {
    std::atomic<std::uint64_t> word{0};
    std::atomic<Word> since{0};
  };

  static std::uint64_t pack(const Units& units) noexcept {
    return static_cast<std::uint64_t>(units.count) << tick_bits |
           static_cast<std::uint64_t>(to_word(units.until)) >> tick_shift;
  }
  static Units unpack(std::uint64_t word) noexcept {
    return {static_cast<Word>(word >> tick_bits),
            to_time(static_cast<Word>(word & tick_mask) << tick_shift)};
  }
  Cell& own() noexcept { return cells_[thread_number() % cells]; }

  std::array<Cell, cells> cells_;
};

}  // namespace sluice::prefetch
