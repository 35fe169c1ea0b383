#include "sluice/sim/store_server.hpp"

#include <algorithm>

namespace sluice::sim {
namespace {

// Service times beyond it would leave the range of times.
constexpr Word longest_us = 366 * 86'400'000'000;

}  // namespace

Time StoreServer::serve(Time now) {
  const Word sample = service_.sample(now, rng_).count();
  const Word factor{factor_};
  const bool fits = sample <= longest_us / (factor / 1000 + 1);
  const Span service{fits ? sample * factor / 1000 : longest_us};
  const Time begin = std::max(now, free_at_);
  free_at_ = std::min(begin + service, to_time(word_limit));
  ++served_;
  busy_ += service;
  waited_ += begin - now;
  return free_at_;
}

}  // namespace sluice::sim
