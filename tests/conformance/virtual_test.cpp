// The conformance suite on the virtual store. Threading: the suite's.
#include "sluice/virtual_store.hpp"
#include "tests/conformance/check.hpp"

TEST_CASE("the virtual store keeps every promise of a store",
          "[conformance][virtual][C-001][C-003][C-005][C-014][C-020][C-021][C-022][C-024][C-025]") {
  sluice::VirtualClock clock;
  const auto store = sluice::make_virtual_store(clock);
  sluice::test::check_store(*store, &clock);
}
