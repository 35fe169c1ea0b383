// The conformance suite through a PrefetchStore. Threading: the suite's.
#include "sluice/prefetch_store.hpp"

#include "sluice/memory_store.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/conformance/check.hpp"

TEST_CASE("a store that prefetches keeps every promise of such a store",
          "[conformance][prefetch]") {
  sluice::VirtualClock clock;
  const auto inner = sluice::make_virtual_store(clock);
  sluice::PrefetchStore store(*inner);
  sluice::test::check_store(store, &clock, 1, true);
}

TEST_CASE("a memory store with prefetched units keeps every promise of such a store",
          "[conformance][prefetch]") {
  const auto inner = sluice::make_memory_store();
  sluice::PrefetchStore store(*inner);
  sluice::test::check_store(store, nullptr, 1, true);
}
