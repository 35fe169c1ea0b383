// Process: one life of a worker, with its connection, its failure policy, its limiter and what it
// knows. A crash ends it; what it has asked the store for is charged, and stays charged. Threading:
// the thread of the World.
#pragma once

#include <memory>
#include <optional>

#include "sim/fleet/adaptive_rate.hpp"
#include "sim/fleet/limiter.hpp"
#include "sim/fleet/throttle.hpp"
#include "sluice/calls/backoff.hpp"
#include "sluice/circuit_breaker.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/fallback_store.hpp"
#include "sluice/prefetch_store.hpp"
#include "sluice/sim/rehearse.hpp"
#include "sluice/sim/worker_clock.hpp"
#include "sluice/sim/world.hpp"

namespace sluice::sim::scenario {

/// The store as a worker with a clock of its own sees it.
class StoreOnClock final : public StoreWrapper {
 public:
  StoreOnClock(Store& inner, Clock& clock) : StoreWrapper(inner), clock_(clock) {}
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

 private:
  Clock& clock_;
};

class Process {
 public:
  /// `shared` and `link`: the fleet's store and the way to it. `clock`: the worker's; may be null.
  /// `number`: of the process in its run.
  Process(World& world, Store& shared, const Link& link, Clock* clock, const Scenario& scenario,
          std::uint32_t number);

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

  /// Ends it as kill -9 does: the waits of its coroutines fail, and it sends nothing more. What it
  /// has sent reaches the store and is decided there; the answers reach nobody.
  void die() noexcept;
  [[nodiscard]] bool is_dead() const noexcept { return dead_; }

  /// The store as the process sees it.
  Store& store() noexcept { return *store_; }
  Limiter& limiter() noexcept { return *limiter_; }
  Limiter& shadow() noexcept { return *shadow_; }
  RetryBudget& budget() noexcept { return budget_; }
  CircuitBreaker& breaker() noexcept { return breaker_; }
  /// These may be empty.
  std::optional<AdaptiveThrottle>& throttle() noexcept { return throttle_; }
  std::optional<AdaptiveRate>& adaptive_rate() noexcept { return adaptive_rate_; }

  RehearsedClient client;  ///< the program's own; none: the scenario's

  [[nodiscard]] std::uint64_t store_operations() const noexcept {
    return connection_ ? connection_->operations() : 0;
  }
  /// Plans that the store allowed, and whose answer found it dead.
  [[nodiscard]] std::uint64_t orphaned() const noexcept {
    return connection_ ? connection_->orphaned() : 0;
  }
  [[nodiscard]] std::uint64_t store_failures() const noexcept {
    return fallback_ ? fallback_->stats().failures : 0;
  }

 private:
  Store& add_fallback(World& world, Store& primary, const Scenario& scenario);

  std::uint32_t number_;
  bool dead_ = false;
  Store* store_ = nullptr;
  std::unique_ptr<RemoteStore> connection_;
  std::optional<StoreOnClock> on_clock_;
  std::unique_ptr<Store> own_;  // in its memory
  std::optional<CircuitBreaker> store_breaker_;
  std::optional<FallbackStore> fallback_;
  std::optional<PrefetchStore> prefetch_;
  RetryBudget budget_;
  CircuitBreaker breaker_;
  std::optional<AdaptiveThrottle> throttle_;
  std::optional<AdaptiveRate> adaptive_rate_;
  std::optional<Limiter> limiter_;
  std::optional<Limiter> shadow_;
};

}  // namespace sluice::sim::scenario
