// A user's test that needs no framework, with the installed test kit.
// Threading: single-threaded.
#include <cstdio>

#include "sluice/testing.hpp"
#include "sluice/testing/replaying_store.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

int main() {
  VirtualFixture fixture;
  const TokenBucket bucket(fixture.store, "api", Quota::per_second(10).burst(1));
  const auto take = [&] { return bucket.try_acquire("alice"); };
  fixture.faults.play(FaultScript("ok*2 unknown"));
  const Played played = fixture.play({
      {at(0s), take, allowed(0)},
      {at(99ms), take, refused(1ms)},
      {after(1ms), take, fails(Errc::unknown)},
      {after(100ms), take, allowed(0)},
  });
  std::fputs(played.failures.c_str(), stderr);

  const Trace trace = parse_trace(to_text(fixture.trace()));
  const Checked broken = (never_exceeds(1, 100ms) && refused_with_exact_hint()).check(trace);
  if (broken) std::fprintf(stderr, "%s\n", broken->what.c_str());

  ReplayingStore replay(trace, fixture.clock);
  const TokenBucket replayed(replay, "api", Quota::per_second(10).burst(1));
  const Decision first = replayed.try_acquire("alice");
  if (!played || broken || !first.allowed || replay.unasked() != 3) return 1;
  std::printf("testing: 4 rows, as expected\n");
  return 0;
}
