// The scenario on which the tests of the models build.
#pragma once

#include <chrono>

#include "sluice/sim/run.hpp"

namespace sluice::test {

/// Jobs that call at once, and are done.
inline sim::Scenario plain() {
  using namespace std::chrono_literals;
  sim::Scenario s;
  s.duration = 200s;
  s.fleet.workers = 3;
  s.limiter.kind = sim::LimiterOptions::Kind::none;
  s.client.retries = sim::ClientOptions::Retries::none;
  s.upstream.to = s.upstream.from = sim::Delay::constant(1ms);
  s.upstream.latency = sim::Delay::constant(1ms);
  return s;
}

}  // namespace sluice::test
