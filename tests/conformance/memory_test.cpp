// The conformance suite on the memory store, on real and on virtual time. Threading: the suite's.
#include "sluice/memory_store.hpp"
#include "tests/conformance/check.hpp"

TEST_CASE("the memory store keeps every promise of a store",
          "[conformance][memory][C-001][C-003][C-005][C-020][C-021][C-022][C-024][C-025]") {
  const auto store = sluice::make_memory_store();
  sluice::test::check_store(*store);
}

TEST_CASE("the memory store keeps every promise of a store while its clock is moved",
          "[conformance][memory][C-001][C-003][C-005][C-020][C-021][C-022][C-024][C-025]") {
  sluice::VirtualClock clock;
  const auto store = sluice::make_memory_store({.clock = &clock});
  sluice::test::check_store(*store, &clock);
}
