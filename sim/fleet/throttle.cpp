#include "sim/fleet/throttle.hpp"

#include <cmath>

namespace sluice::sim::scenario {
namespace {

constexpr std::uint64_t millionth = 1'000'000;

}  // namespace

AdaptiveThrottle::AdaptiveThrottle(double ratio, Span window, const SeededRng& rng)
    : ratio_(static_cast<std::uint64_t>(std::llround(ratio * millionth))),
      window_(window),
      rng_(rng) {}

std::uint64_t AdaptiveThrottle::count(std::deque<Time>& times, Time now) const {
  while (!times.empty() && times.front() <= now - window_) times.pop_front();
  return times.size();
}

AdaptiveThrottle::Odds AdaptiveThrottle::odds(Time now) {
  const std::uint64_t requests = count(requests_, now);
  const std::uint64_t asked = requests * millionth;
  const std::uint64_t covered = ratio_ * count(accepts_, now);
  return {asked > covered ? asked - covered : 0, (requests + 1) * millionth};
}

bool AdaptiveThrottle::ask(Time now) {
  const auto [refused, of] = odds(now);
  requests_.push_back(now);
  return refused == 0 || rng_.below(of) >= refused;
}

}  // namespace sluice::sim::scenario
