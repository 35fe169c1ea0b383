#include <sluice/calls/guarded.hpp>
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
  const auto store = make_virtual_store(clock);
  const TokenBucket requests(*store, "requests", Quota::per_minute(6).burst(1));
  const TokenBucket tokens(*store, "tokens", Quota::per_hour(1000));
  const Gates gates(*store, "model", {"account"});
  const Time start = clock.now();

  int sent = 0;
  const auto model = [&] {
    std::cout << "request " << ++sent << " at " << (clock.now() - start) / 1s << " s\n";
    if (sent == 2) throw RateLimited(30s);         // the API said: 429, retry after 30 s
    return Costed<std::string>{"an answer", 120};  // in tokens
  };

  const Call ask({{requests, "alice"},
                  {tokens, "alice", Estimate{400}},
                  {gates, gates.scope("account", "ours")}},
                 {.deadline = 2min});
  for (int question = 1; question <= 2; ++question) {
    const std::string text = ask(model);
    std::cout << text << ", " << tokens.peek("alice").remaining << " tokens left\n";
  }

  // One limiter, one try.
  std::cout << guarded(tokens, "alice", 400, 0s, model) << '\n';
}
