// Metrics of which every family has samples, for tests of the whole page. Threading: none.
#pragma once

#include "sluice/sluice.hpp"

namespace sluice::test {

/// Tells the metrics at least one event of each kind.
inline void fill(Metrics& metrics) {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "api", Quota::per_minute(1));
  const Step step = bucket.acquire_step("alice");
  const Decision allowed{.allowed = true, .source = Source::redis, .limit = 1, .remaining = 0};
  const Decision refused{.source = Source::redis, .limit = 1};
  const auto failed = make_error_code(Errc::not_connected);
  const Span took = std::chrono::milliseconds{1};
  metrics.decided({.step = step, .decision = allowed, .store = "redis", .took = took});
  metrics.decided({.step = step, .decision = refused, .store = "redis", .took = took});
  metrics.decided({.step = step, .decision = refused, .error = failed, .store = "redis"});
  metrics.decided({.step = step, .decision = refused, .store = "redis", .is_shadow = true});

  using Result = WaitEvent::Result;
  for (const Result result : {Result::begun, Result::granted, Result::begun}) {
    metrics.wait_changed({.call = &step, .result = result, .limiter = "api", .waited = took});
  }
  using Change = LeaseEvent::Change;
  for (const Change change : {Change::granted, Change::renewal_failed, Change::lost}) {
    metrics.lease_changed({.change = change, .limiter = "jobs", .key = "alice"});
  }
  metrics.gate_changed({.gates = "ads", .scope = "account=acme", .until = Time::max()});
  for (const bool is_retried : {true, false}) {
    metrics.try_failed({.limiter = "api", .is_retried = is_retried});
  }
  using State = CircuitBreaker::State;
  metrics.breaker_changed({"redis", 0, State::closed, State::open});
  metrics.watch("redis", [] { return PrefetchStats{.taken = 9, .returned = 2, .lapsed = 1}; });
  metrics.connection_changed({.store = "redis", .server = "127.0.0.1:6379"});
}

}  // namespace sluice::test
