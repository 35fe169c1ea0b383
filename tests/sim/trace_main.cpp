// Runs the pinned simulations; compiled by trace.cmake with other compilers and levels.
// Threading: single-threaded.
#include <cstdio>

#include "tests/sim/pinned_trace.hpp"

int main() {
  bool same = true;
  for (const auto& [limiting, expected] : sluice::test::pinned_traces) {
    const std::uint64_t trace = sluice::test::trace_of(limiting);
    std::printf("%016llx", static_cast<unsigned long long>(trace));
    if (trace != expected) {
      std::printf(" but %016llx is pinned", static_cast<unsigned long long>(expected));
      same = false;
    }
    std::printf("\n");
  }
  return same ? 0 : 1;
}
