// A user's program: limits on the clock of a unit test, with what an installed Sluice offers.
// Threading: single-threaded.
#include <cstdio>

#include "sluice/algorithms/token_bucket.hpp"
#include "sluice/clock.hpp"
#include "sluice/quota.hpp"

int main() {
  const sluice::VirtualClock clock;
  const auto quota = sluice::Quota::per_second(10).burst(5);
  sluice::TokenBucketRule::State state;
  int allowed = 0;
  for (int i = 0; i < 7; ++i) {
    const auto args = sluice::TokenBucketRule::args(quota, 1);
    const auto now = clock.now().time_since_epoch().count();
    if (sluice::TokenBucketRule::take(state, args, now).status == 1) ++allowed;
  }
  std::printf("allowed %d of 7\n", allowed);
  return allowed == 5 ? 0 : 1;
}
