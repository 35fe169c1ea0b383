// One call under a user's bucket and a partner's rate that lives in the store: one plan, which is
// made again when somebody has changed the rate.
#include <sluice/sluice.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

namespace {

Decision admit(const TokenBucket& user, const SharedSlidingWindow& rates, std::string_view who) {
  for (;;) {
    const SharedSlidingWindowSteps rate = rates.acquire_steps("partner");
    const std::array steps{user.acquire_step(who), rate[0], rate[1]};
    std::error_code error;
    const Decision decision = decide(user.store(), steps, error);
    if (error == Errc::config_changed) {
      std::cout << "the rate has changed\n";
      rates.refresh("partner");
      continue;
    }
    if (error) throw std::system_error(error);
    std::cout << who << ": "
              << (decision             ? "go"
                  : decision.step == 0 ? "too fast"
                                       : "wait")
              << '\n';
    return decision;
  }
}

}  // namespace

int main() {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket user{*store, "user", Quota::per_second(1).burst(2)};
  const SharedSlidingWindow here{*store, "rate"};
  const SharedSlidingWindow operations{*store, "rate"};
  operations.configure("partner", RateType::overall, 3, 10s, SpentUnits::forgotten);

  const bool two = admit(user, here, "alice") && admit(user, here, "alice");
  const bool fast = admit(user, here, "alice").step == 0;
  const bool three = admit(user, here, "bob").allowed;
  const Decision full = admit(user, here, "bob");  // the partner's rate: nobody is charged
  operations.configure("partner", RateType::overall, 4, 10s);
  const bool four = admit(user, here, "bob").allowed;
  return two && fast && three && full.step == 2 && full.retry_after == 10s && four ? 0 : 1;
}
