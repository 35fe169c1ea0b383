#include <sluice/calls/call.hpp>
#include <sluice/limiters/learned_rate.hpp>
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);  // time passes while all threads wait
  const auto store = make_virtual_store(clock);   // a fleet shares a make_redis_store()
  const LearnedRate rate(*store, "partner");
  const Call call({{rate, "ours"}}, {.attempts = 10});

  // The API, which tells nobody that it takes 50 calls a second, and later 25.
  const TokenBucket fast(*store, "fast", Quota::per_second(50).burst(10));
  const TokenBucket slow(*store, "slow", Quota::per_second(25).burst(10));
  const Time start = clock.now();
  int accepted = 0;
  int refused = 0;
  const auto api = [&] {
    clock.advance(10ms);
    const bool is_fast = clock.now() < start + 60s;
    if (!(is_fast ? fast : slow).try_acquire("ours")) {
      ++refused;
      throw RateLimited();
    }
    ++accepted;
  };

  for (Time end = start + 20s; end <= start + 120s; end += 20s) {
    while (clock.now() < end) call(api);
    std::cout << (end - start) / 1s << " s: " << accepted << " accepted, " << refused
              << " refused, rate " << rate.learned("ours").rate / 1'000'000 << "/s\n";
    accepted = refused = 0;
  }
}
