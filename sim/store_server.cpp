#include "sluice/sim/store_server.hpp"

#include <algorithm>

namespace sluice::sim {

Time StoreServer::serve(Time now) {
  const Span service = service_.sample(rng_) * factor_ / 1000;
  const Time begin = std::max(now, free_at_);
  free_at_ = begin + service;
  ++served_;
  busy_ += service;
  waited_ += begin - now;
  return free_at_;
}

}  // namespace sluice::sim
