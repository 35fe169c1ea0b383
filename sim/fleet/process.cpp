#include "sim/fleet/process.hpp"

#include "sim/scenario/effects.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::sim::scenario {
namespace {

constexpr std::uint64_t throttling = 0x7468726f74;  // a purpose of stream()

}  // namespace

Process::Process(World& world, Store& shared, const Link& link, Clock* clock,
                 const Scenario& scenario, std::uint32_t number)
    : number_(number),
      budget_(scenario.client.budget != 0 ? scenario.client.budget : 1000),
      breaker_(world.clock()) {
  if (scenario.client.throttle != 0) {
    throttle_.emplace(scenario.client.throttle, scenario.client.throttle_window,
                      stream(scenario.seed, number, throttling));
  }
  if (scenario.client.adaptive) adaptive_rate_.emplace();
  const LimiterOptions& options = scenario.limiter;
  const Word share = shares_of(scenario);
  Store*& store = store_;
  if (is_alone(scenario)) {
    own_ = make_virtual_store(world.clock());
    store = own_.get();
  } else {
    connection_ = world.connect(shared, link);
    store = connection_.get();
    if (clock != nullptr) store = &on_clock_.emplace(*store, *clock);
    if (scenario.store.on_failure != StoreOptions::OnFailure::error) {
      store = &add_fallback(world, *store, scenario);
    }
  }
  if (options.hold != Span{0}) {
    prefetch_.emplace(*store, PrefetchStoreOptions{.hold = options.hold, .most = options.most});
  }
  const auto store_of = [&](LimiterOptions::Kind kind) -> Store& {
    return prefetch_ && is_prefetched(kind) ? *prefetch_ : *store;
  };
  limiter_.emplace(store_of(options.kind), "limit", options.kind, options, share);
  LimiterOptions other = options;
  other.gates = false;
  shadow_.emplace(store_of(options.shadow), "shadow", options.shadow, other, share);
}

Store& Process::add_fallback(World& world, Store& primary, const Scenario& scenario) {
  const auto policy = [&] {
    switch (scenario.store.on_failure) {
      case StoreOptions::OnFailure::open:
        return FailurePolicy::open();
      case StoreOptions::OnFailure::local:
        own_ = make_virtual_store(world.clock());
        return FailurePolicy::local(*own_, scenario.fleet.workers);
      default:
        return FailurePolicy::closed();
    }
  }();
  store_breaker_.emplace(primary.clock());
  return fallback_.emplace(primary, *store_breaker_, policy, scenario.store.timeout);
}

void Process::die() noexcept {
  dead_ = true;
  if (connection_) connection_->abandon();
}

}  // namespace sluice::sim::scenario
