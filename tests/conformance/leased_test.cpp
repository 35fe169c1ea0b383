// The conformance suite through a LeasedStore. Threading: the suite's.
#include "sluice/leased_store.hpp"

#include "sluice/memory_store.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/conformance/check.hpp"

TEST_CASE("a store with leases keeps every promise of a leased store", "[conformance][leased]") {
  sluice::VirtualClock clock;
  const auto inner = sluice::make_virtual_store(clock);
  sluice::LeasedStore store(*inner);
  sluice::test::check_store(store, &clock, 1, true);
}

TEST_CASE("a memory store with leases keeps every promise of a leased store",
          "[conformance][leased]") {
  const auto inner = sluice::make_memory_store();
  sluice::LeasedStore store(*inner);
  sluice::test::check_store(store, nullptr, 1, true);
}
