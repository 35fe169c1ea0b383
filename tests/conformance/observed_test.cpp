// The conformance suite through an ObservedStore. Threading: the suite's.
#include "sluice/memory_store.hpp"
#include "sluice/metrics.hpp"
#include "sluice/observed_store.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/conformance/check.hpp"

TEST_CASE("a store that is observed keeps every promise of that store", "[conformance][observe]") {
  sluice::Metrics metrics;
  sluice::VirtualClock clock;
  sluice::ObservedStore store(sluice::make_virtual_store(clock), metrics);
  sluice::test::check_store(store, &clock);
  CHECK(metrics.text().find("sluice_decisions_total{") != std::string::npos);
}

TEST_CASE("a memory store that is observed keeps every promise of that store",
          "[conformance][observe]") {
  sluice::Metrics metrics;
  sluice::ObservedStore store(sluice::make_memory_store(), metrics);
  sluice::test::check_store(store);
}
