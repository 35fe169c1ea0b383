// Prints a page of metrics on which every family has samples, for promtool. Threading: none.
#include <iostream>

#include "tests/observe/full_metrics.hpp"

int main() {
  sluice::Metrics metrics;
  sluice::test::fill(metrics);
  std::cout << metrics.text(sluice::Metrics::Format::prometheus);
}
