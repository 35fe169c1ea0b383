// Runs the pinned simulations; compiled by trace.cmake with other compilers and levels.
// Threading: single-threaded.
#include <cstdio>

#include "sim/tests/pinned_models.hpp"
#ifdef SLUICE_TRACE_WORLD
#include "sim/tests/fleet/pinned_scenario.hpp"
#include "sim/tests/world/pinned_world_trace.hpp"
#endif

namespace {

bool is_pinned(std::uint64_t trace, std::uint64_t expected) {
  std::printf("%016llx", static_cast<unsigned long long>(trace));
  if (trace != expected) {
    std::printf(" but %016llx is pinned", static_cast<unsigned long long>(expected));
  }
  std::printf("\n");
  return trace == expected;
}

}  // namespace

int main() {
  bool same = is_pinned(sluice::test::trace_of_models(), sluice::test::pinned_models);
#ifdef SLUICE_TRACE_WORLD
  for (const auto& [options, expected] : sluice::test::pinned_world_traces) {
    same &= is_pinned(sluice::test::trace_of(options), expected);
  }
  for (const auto& [prefetch, expected] : sluice::test::pinned_scenarios) {
    same &= is_pinned(sluice::sim::run(sluice::test::pinned_scenario(prefetch)).trace, expected);
  }
#endif
  return same ? 0 : 1;
}
