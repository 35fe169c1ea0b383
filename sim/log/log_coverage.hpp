// Whether a log holds the traffic that it is replayed for: a log with gaps, of which only a sample
// was kept, or whose stamps are coarse is replayed like any other, but its figures say little about
// live traffic. Threading: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "sim/log/access_log.hpp"

namespace sluice::tool {

/// Silences that are much longer than the traffic explains: longer than ten minutes, and than ten
/// times the longest silence to expect of as many requests spread at random over the same time,
/// which is mean * (1 + ln(requests)).
struct Gaps {
  std::uint64_t count = 0;
  std::int64_t total = 0;    ///< seconds
  std::int64_t longest = 0;  ///< seconds
  std::int64_t start = 0;    ///< of the first of the longest: the second of the request before it
};

/// At least 95 % of all requests lie in the same minute of every `period`.
struct Sampling {
  std::int64_t period = 0;     ///< minutes: a day, an hour, or a part of an hour; 0: there is none
  std::int64_t minute = 0;     ///< of the period, by the log's own UTC offset, from 0
  std::uint64_t requests = 0;  ///< in that minute, over all periods
};

/// Minutes of the clock in which five or more clients asked, and nobody in the minute before or
/// after.
struct IsolatedMinutes {
  std::uint64_t count = 0;
  std::uint64_t requests = 0;
};

/// What speaks against reading a log's figures as those of live traffic. Each is told only where
/// there is enough of it not to be chance: a sampled minute of 10 periods, 3 isolated minutes with
/// a tenth of all requests between them, stamps of 10 different seconds.
struct LogCoverage {
  Gaps gaps;
  Sampling sampling;
  IsolatedMinutes isolated;
  std::int64_t stamp_step = 1;  ///< seconds: all stamps are apart by multiples of it

  /// True if nothing does.
  [[nodiscard]] bool complete() const {
    return gaps.count == 0 && sampling.period == 0 && isolated.count == 0 && stamp_step == 1;
  }
};

/// O(requests). What it cannot see: a sample that keeps each request with the same chance.
[[nodiscard]] LogCoverage coverage_of(const AccessLog& log);

/// The same in lines for people, the last of which ends; "" if nothing speaks against the log.
[[nodiscard]] std::string coverage_text(const AccessLog& log);

}  // namespace sluice::tool
