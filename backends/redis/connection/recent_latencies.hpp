// RecentLatencies: the times to reply of the last one to two minutes. Threading: any member from
// any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>

#include "backends/redis/connection/latency_histogram.hpp"

namespace sluice::redis_detail {

/// Two histograms that take turns, each for the minutes with an even or an odd number. The first
/// time of a minute clears its histogram; times that other threads record meanwhile may be lost, or
/// counted in that minute though they belong to the one before. 9 KiB.
class RecentLatencies {
 public:
  static constexpr Span period = std::chrono::minutes{1};

  /// `now`: the instant of the reply, by a clock that is used for all calls.
  void record(Span span, Time now) noexcept {
    const Word minute = minute_of(now);
    Turn& turn = turns_[static_cast<std::size_t>(minute & 1)];
    Word last = turn.minute.load(std::memory_order_relaxed);
    const bool is_new = last != minute && turn.minute.compare_exchange_strong(
                                              last, minute, std::memory_order_relaxed);
    if (is_new) turn.times.clear();
    turn.times.record(span);
  }

  /// Adds the times of the minute of `now` and of the one before.
  void add_to(LatencyCounts& counts, Time now) const noexcept {
    const Word minute = minute_of(now);
    for (const Turn& turn : turns_) {
      const Word last = turn.minute.load(std::memory_order_relaxed);
      if (last == minute || last == minute - 1) counts.add(turn.times);
    }
  }

 private:
  struct Turn {
    std::atomic<Word> minute{0};
    LatencyHistogram times;
  };

  static Word minute_of(Time now) noexcept { return now.time_since_epoch() / period; }

  std::array<Turn, 2> turns_;
};

}  // namespace sluice::redis_detail
