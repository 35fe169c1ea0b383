#include <sluice/calls/call.hpp>
#include <sluice/calls/estimator.hpp>
#include <sluice/limiters/gates.hpp>
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <string>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);  // time passes while all threads wait
  const auto store = make_virtual_store(clock);   // a fleet shares a make_redis_store()
  const TokenBucket requests(*store, "requests", Quota::per_minute(60).burst(5));
  const TokenBucket tokens(*store, "tokens", Quota::per_minute(10'000).burst(2'000),
                           {.refund = Refund::in_full});
  const Gates gates(*store, "model", {"account"});
  Estimator estimator;  // one a process
  const LearnedEstimate estimate = estimator.of("small model", 1400);

  const Call ask(
      {{requests, "ours"}, {tokens, "ours", estimate}, {gates, gates.scope("account", "ours")}},
      {.deadline = 5min});

  // The API: an answer takes 5 s, and says what it has cost. The tenth request is refused.
  int sent = 0;
  const auto model = [&] {
    if (++sent == 10) throw RateLimited(30s);
    clock.advance(5s);
    return Costed<std::string>{"an answer", 300 + sent * 97 % 200};
  };

  const Time start = clock.now();
  for (int answers = 1; answers <= 30; ++answers) {
    const Word charged = estimate.cost().value();
    ask(model);
    if (answers % 10 == 0) {
      std::cout << answers << " answers in " << (clock.now() - start) / 1s << " s, the last for an "
                << "estimate of " << charged << '\n';
    }
  }
  std::cout << sent << " requests; " << tokens.peek("ours").remaining << " tokens left\n";
}
