// Limiters against their textbook forms: GCRA, and the busiest window that each algorithm admits.
// Threading: single-threaded.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/sim/delay.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

/// The generic cell rate algorithm, as the virtual scheduling of ITU-T I.371, with an emission
/// interval and a burst of whole cells: a theoretical arrival time, which a call of several cells
/// moves by as many intervals.
class Gcra {
 public:
  Gcra(Word interval, Word burst) : interval_(interval), burst_(burst) {}

  /// 0: it conforms; else how much later it would.
  Word arrive(Word now, Word cells) {
    const Word next = std::max(arrival_, now) + cells * interval_;
    const Word earliest = next - burst_ * interval_;
    if (now < earliest) return earliest - now;
    arrival_ = next;
    return 0;
  }

 private:
  Word interval_;
  Word burst_;
  Word arrival_ = 0;
};

struct CellRate {
  Word interval;  ///< microseconds
  Word burst;
  Word cost;  ///< at most, of one call
};

/// A window of the limit, and a clock at one of its edges.
constexpr Word limit = 1000;
constexpr Span window = 1min;
constexpr Time edge = to_time(60'000'000'000);

/// The grants of calls that come as they please.
class Grants {
 public:
  explicit Grants(VirtualClock& clock) : clock_(clock) {}

  /// Asks again and again at one instant until a call is refused.
  template <class Limiter>
  void drain(const Limiter& limiter, Time now) {
    clock_.set(now);
    while (limiter.try_acquire("all").allowed) times_.push_back(now);
  }
  /// Asks now, and whenever the hint says, until `end`.
  template <class Limiter>
  void follow(const Limiter& limiter, Time now, Time end) {
    while (now < end) {
      clock_.set(now);
      const Decision decision = limiter.try_acquire("all");
      if (decision.allowed) times_.push_back(now);
      if (!decision.allowed) now += decision.retry_after;
    }
  }
  /// The most in any (t - window, t].
  [[nodiscard]] Word busiest() const {
    std::size_t most = 0;
    for (std::size_t first = 0, last = 0; last < times_.size(); ++last) {
      while (times_[last] - times_[first] >= window) ++first;
      most = std::max(most, last + 1 - first);
    }
    return static_cast<Word>(most);
  }

 private:
  VirtualClock& clock_;
  std::vector<Time> times_;
};

/// The worst case of each algorithm: nothing for two windows, all that it admits in the last
/// microsecond of one, and then whatever it admits, as soon as it does.
template <class Limiter>
Word busiest_window(VirtualClock& clock, const Limiter& limiter) {
  Grants grants(clock);
  grants.drain(limiter, edge - Span{1});
  grants.follow(limiter, edge, edge + 2 * window);
  return grants.busiest();
}

/// The busiest window under random calls, three times as many as the limit admits.
template <class Limiter>
Word random_window(VirtualClock& clock, const Limiter& limiter, std::uint64_t seed) {
  Grants grants(clock);
  SeededRng rng = stream(seed, 0, 1);
  const Delay gap = Delay::exponential(5s);
  for (Time now = edge; now < edge + 20 * window; now += gap.sample(rng)) {
    grants.drain(limiter, now);  // bursts find what a window has left
  }
  return grants.busiest();
}

template <class Make>
void check_worst(const std::string& algorithm, Word expected, Make make) {
  VirtualClock clock(edge);
  const auto store = make_virtual_store(clock);
  const Word worst = busiest_window(clock, make(*store));
  std::printf("%-50s %9lld    closed form %lld\n", ("busiest window, " + algorithm).c_str(),
              static_cast<long long>(worst), static_cast<long long>(expected));
  CAPTURE(algorithm);
  CHECK(worst == expected);
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    VirtualClock other(edge);
    const auto fresh = make_virtual_store(other);
    CHECK(random_window(other, make(*fresh), seed) <= expected);
  }
}

}  // namespace

TEST_CASE("GCRA decides 10 million arrivals as the token bucket does") {
  constexpr int arrivals = 2'000'000;
  for (const CellRate& rate :
       {CellRate{10'000, 1, 1}, CellRate{1'000, 50, 1}, CellRate{7, 1'000, 1},
        CellRate{333'333, 3, 3}, CellRate{20'000, 100, 10}}) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const TokenBucket bucket(*store, "cells", Quota::per(1, Span{rate.interval}).burst(rate.burst));
    Gcra gcra(rate.interval, rate.burst);
    SeededRng rng = stream(static_cast<std::uint64_t>(rate.interval), 0, 1);
    const Delay gap = Delay::exponential(Span{std::max<Word>(rate.interval * rate.cost / 3, 1)});
    int granted = 0;
    int different = 0;
    Word hint = 0;
    for (int i = 0; i < arrivals; ++i) {
      // A third of the calls comes when the last refusal said, or 1 us too early.
      const bool follows = hint > 0 && rng.below(3) == 0;
      clock.move_alone(clock.now() +
                       (follows ? Span{hint - static_cast<Word>(rng.below(2))} : gap.sample(rng)));
      const Word cost = 1 + static_cast<Word>(rng.below(static_cast<std::uint64_t>(rate.cost)));
      const Decision decision = bucket.try_acquire("all", cost);
      hint = gcra.arrive(to_word(clock.now()), cost);
      if (decision.allowed != (hint == 0) || decision.retry_after != Span{hint}) ++different;
      if (decision.allowed) ++granted;
    }
    const std::string name = "GCRA of " + std::to_string(rate.interval) + " us, burst " +
                             std::to_string(rate.burst) + ", different decisions";
    std::printf("%-50s %9d    of %d, %d granted\n", name.c_str(), different, arrivals, granted);
    CAPTURE(name);
    CHECK(different == 0);
    CHECK(granted > arrivals / 20);
    CHECK(granted < arrivals - arrivals / 20);
  }
}

TEST_CASE("the busiest windows are as long as their formulas say") {
  check_worst("fixed window: 2 * limit", 2 * limit, [](Store& store) {
    return FixedWindow(store, "limit", limit, Calendar::every(window));
  });
  const Word span = window.count();
  check_worst("counter: limit + limit * (w - 2) / w", limit + limit * (span - 2) / span,
              [](Store& store) {
                return SlidingWindowCounter(store, "limit", WindowLimit{limit, window});
              });
  check_worst("sliding window: limit", limit, [](Store& store) {
    return SlidingWindow(store, "limit", {WindowLimit{limit, window}});
  });
  // In less than a window, whose end is not a part of it, a unit less than the limit drips in.
  check_worst("bucket: burst + rate * w", 2 * limit - 1, [](Store& store) {
    return TokenBucket(store, "limit", Quota::per(limit, window).burst(limit));
  });
  check_worst("bucket, burst 50: burst + rate * w", limit + 50 - 1, [](Store& store) {
    return TokenBucket(store, "limit", Quota::per(limit, window).burst(50));
  });
}
