// The conformance suite through a FallbackStore whose primary is well. Threading: the suite's.
#include "sluice/fallback_store.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/conformance/check.hpp"

TEST_CASE("a store behind a breaker keeps every promise of a store", "[conformance][fallback]") {
  sluice::VirtualClock clock;
  const auto primary = sluice::make_virtual_store(clock);
  sluice::CircuitBreaker breaker(clock);
  sluice::FallbackStore store(*primary, breaker, sluice::FailurePolicy::closed());
  sluice::test::check_store(store, &clock);
  CHECK(store.stats().failures == 0);
}

TEST_CASE("a store with a local one in reserve keeps every promise of a store",
          "[conformance][fallback]") {
  const auto primary = sluice::make_memory_store();
  const auto local = sluice::make_memory_store();
  sluice::CircuitBreaker breaker(primary->clock());
  sluice::FallbackStore store(*primary, breaker, sluice::FailurePolicy::local(*local, 4));
  sluice::test::check_store(store);
  CHECK(store.stats().failures == 0);
}
