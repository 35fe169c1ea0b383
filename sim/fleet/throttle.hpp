// AdaptiveThrottle: the client refuses calls by itself, by what the API has accepted of late.
// Source: Google, "Site Reliability Engineering" (2016), chapter "Handling Overload". Threading:
// one run.
#pragma once

#include <cstdint>
#include <deque>

#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice::sim::scenario {

/// Refuses a request with the probability max(0, (requests - ratio * accepts) / (requests + 1)).
/// Both are counted over the last `window`: what was at s counts at t if t - window < s <= t.
/// Requests are counted whether they are refused or not.
class AdaptiveThrottle {
 public:
  /// A probability as a quotient of whole numbers.
  struct Odds {
    std::uint64_t refused = 0;
    std::uint64_t of = 1;
  };

  /// `ratio`: 1 to 1000; rounded to millionths. REQUIRES: `window` is positive.
  AdaptiveThrottle(double ratio, Span window, const SeededRng& rng);

  /// Of a request at this time. Times must not go back, here and below.
  [[nodiscard]] Odds odds(Time now);
  /// Counts a request, and draws whether it may be sent.
  [[nodiscard]] bool ask(Time now);
  void note_accept(Time now) { accepts_.push_back(now); }

 private:
  [[nodiscard]] std::uint64_t count(std::deque<Time>& times, Time now) const;

  std::uint64_t ratio_;  // in millionths
  Span window_;
  SeededRng rng_;
  std::deque<Time> requests_;
  std::deque<Time> accepts_;
};

}  // namespace sluice::sim::scenario
