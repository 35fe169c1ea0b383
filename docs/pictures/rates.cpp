// Pictures of what limits a rate: buckets and windows.
#include <algorithm>

#include "docs/pictures/pictures.hpp"
#include "docs/pictures/world.hpp"
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/shared_sliding_window.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/limiters/token_bucket.hpp"

namespace sluice::pictures {
namespace {

using std::chrono::seconds;

/// How many of `times` lie within the `span` before `now`.
double count_within(const std::vector<double>& times, double now, double span) {
  return static_cast<double>(
      std::ranges::count_if(times, [&](double t) { return t > now - span && t <= now; }));
}

}  // namespace

void token_bucket(std::ostream& out) {
  World world;
  const TokenBucket bucket(*world.store, "api", Quota::per_second(10).burst(20));
  Block tokens;
  Block admitted;
  Block refused;
  world.tick_until(400, 0.05, [&](int tick, double at) {
    const double rate = at < 4 ? 6 : at < 9 ? 20 : at < 13 ? 0 : 6;
    const int calls = tick == 260 ? 26 : world.happens(rate, 0.05) ? 1 : 0;
    for (int call = 0; call < calls; ++call) {
      const Decision decision = bucket.try_acquire("alice");
      (decision ? admitted : refused).add({at, static_cast<double>(decision.remaining)});
    }
    tokens.add({at, static_cast<double>(bucket.peek("alice", 0).remaining)});
  });
  tokens.print(out, "seconds, tokens left");
  admitted.print(out, "admitted: seconds, tokens left");
  refused.print(out, "refused: seconds, tokens left");
}

void sliding_window(std::ostream& out) {
  World world;
  const SlidingWindow limit(*world.store, "partner", {{20, seconds{5}}, {50, seconds{20}}});
  Block used;
  Block refused;
  world.tick_until(600, 0.1, [&](int /*tick*/, double at) {
    const double rate = at < 10 ? 2 : at < 30 ? 7 : at < 40 ? 0.5 : 4;
    if (world.happens(rate, 0.1)) {
      if (!limit.try_acquire("shop")) refused.add({at});
    }
    const std::vector<Word> left = limit.remaining("shop");
    used.add({at, 20 - static_cast<double>(left[0]), 50 - static_cast<double>(left[1])});
  });
  used.print(out, "seconds, used of 20 in 5 s, used of 50 in 20 s");
  refused.print(out, "refused: seconds");
}

void sliding_window_counter(std::ostream& out) {
  World world;
  const SlidingWindowCounter limit(*world.store, "daily", {200, seconds{10}});
  std::vector<double> grants;
  Block counts;
  world.tick_until(6000, 0.01, [&](int tick, double at) {
    const double rate = at < 12 ? 10 : at < 16 ? 60 : at < 28 ? 4 : at < 45 ? 30 : 8;
    if (world.happens(rate, 0.01) && limit.try_acquire("alice")) grants.push_back(at);
    if (tick % 20 == 0) {
      const double estimate = 200 - static_cast<double>(limit.peek("alice", 0).remaining);
      counts.add({at, estimate, count_within(grants, at, 10)});
    }
  });
  counts.print(out, "seconds, counted of 200 in 10 s, really admitted in the last 10 s");
}

void fixed_window(std::ostream& out) {
  World world;
  const FixedWindow limit(*world.store, "operations", 100, Calendar::every(seconds{60}));
  std::vector<double> grants;
  Block counts;
  Block refused;
  world.tick_until(3000, 0.1, [&](int tick, double at) {
    const double rate = at > 100 && at < 140 ? 6 : at > 185 && at < 230 ? 3 : 1;
    if (world.happens(rate, 0.1)) {
      if (limit.try_acquire("account")) {
        grants.push_back(at);
      } else {
        refused.add({at});
      }
    }
    if (tick % 10 == 0) {
      const double used = 100 - static_cast<double>(limit.peek("account", 0).remaining);
      counts.add({at, used, count_within(grants, at, 60)});
    }
  });
  counts.print(out, "seconds, used of 100 in this window, admitted in the last 60 s");
  refused.print(out, "refused: seconds");
}

void shared_sliding_window(std::ostream& out) {
  World world;
  // Two clients, each with a limiter of its own; the rate is in the store.
  const SharedSlidingWindow first(*world.store, "calls");
  const SharedSlidingWindow second(*world.store, "calls");
  first.configure("partner", RateType::overall, 30, seconds{10}, SpentUnits::forgotten);
  double rate = 30;
  std::vector<double> grants;
  Block used;
  Block refused;
  world.tick_until(600, 0.1, [&](int tick, double at) {
    if (tick == 200 || tick == 400) {
      rate = tick == 200 ? 50 : 15;
      first.configure("partner", RateType::overall, static_cast<Word>(rate), seconds{10});
    }
    if (world.happens(6, 0.1)) {
      const SharedSlidingWindow& client = world.rng.below(2) == 0 ? first : second;
      if (client.try_acquire("partner")) {
        grants.push_back(at);
      } else {
        refused.add({at});
      }
    }
    if (tick % 2 == 0) used.add({at, count_within(grants, at, 10), rate});
  });
  used.print(out, "seconds, admitted in the last 10 s, rate in 10 s");
  refused.print(out, "refused: seconds");
}

void shared_token_bucket(std::ostream& out) {
  World world;
  const SharedTokenBucket bucket(*world.store, "api");
  bucket.configure("alice", Quota::per_second(10).burst(20));
  double burst = 20;
  Block tokens;
  Block refused;
  world.tick_until(600, 0.05, [&](int tick, double at) {
    if (tick == 200 || tick == 400) {
      const int rate = tick == 200 ? 3 : 12;
      burst = tick == 200 ? 10 : 30;
      bucket.configure("alice", Quota::per_second(rate).burst(static_cast<Word>(burst)));
    }
    if (world.happens(7, 0.05) && !bucket.try_acquire("alice")) refused.add({at});
    tokens.add({at, static_cast<double>(bucket.peek("alice", 0).remaining), burst});
  });
  tokens.print(out, "seconds, tokens left, burst");
  refused.print(out, "refused: seconds");
}

}  // namespace sluice::pictures
