#include <sluice/calls/call.hpp>
#include <sluice/http.hpp>
#include <sluice/limiters/gates.hpp>
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);  // time passes while the program waits
  const auto store = make_virtual_store(clock);   // in production make_redis_store()

  // All processes that share the store call in turn, at the partner's rate.
  const TokenBucket rate(*store, "partner", Quota::per_second(10).burst(1));
  const Gates gates(*store, "partner", {"account"}, {.ramp = 0s, .spacing = 0s});
  const Call call({{rate, "ours"}, {gates, gates.scope("account", "ours")}}, {.deadline = 1min});

  // The partner, in the place of HTTP: 10 a second with a burst of 5, and headers when it refuses.
  const TokenBucket theirs(make_virtual_store(clock), "account", Quota::per_second(10).burst(5));
  const http::RequestLimit partner(theirs);
  int sent = 0;
  int refused = 0;
  const auto get = [&] {
    if (++sent == 21) theirs.penalize("ours", 30);  // another program uses our account
    const http::Admission answer = partner.admit("ours");
    if (answer.status == 429) ++refused;
    http::require_served(answer.status,
                         http::parse_feedback(answer.headers.strings(), clock.now()));
  };

  const Time start = clock.now();
  for (int page = 1; page <= 40; ++page) {
    call(get);
    if (page % 10 == 0) {
      std::cout << page << " pages in " << (clock.now() - start) / 1ms << " ms, " << refused
                << " refused\n";
    }
  }
}
