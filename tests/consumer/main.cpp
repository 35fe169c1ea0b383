// A user's program: one limiter on each store that the installed Sluice offers.
// Threading: single-threaded.
#include <cstdio>

#include "sluice/sluice.hpp"

namespace {

// 5 of 7 calls at the same moment fit a burst of 5.
bool admits_its_burst(const char* name, sluice::Store& store) {
  const sluice::TokenBucket bucket{store, "calls", sluice::Quota::per_minute(1).burst(5)};
  int allowed = 0;
  for (int i = 0; i < 7; ++i) {
    if (bucket.try_acquire("alice")) ++allowed;
  }
  std::printf("%s: allowed %d of 7\n", name, allowed);
  return allowed == 5;
}

}  // namespace

int main() {
  sluice::VirtualClock clock;
  const auto virtual_store = sluice::make_virtual_store(clock);
  return admits_its_burst("virtual", *virtual_store) ? 0 : 1;
}
