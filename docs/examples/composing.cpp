// One call under limits of four kinds, decided at one instant, all or nothing: the user's bucket,
// the account's windows, the fleet's concurrency, and a gate that the API has closed.
#include <sluice/sluice.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

namespace {

struct Limits {
  explicit Limits(Store& store)
      : user{store, "user", Quota::per_second(5).burst(3)},
        account{store, "account", {{4, 5s}, {100, 10min}}},
        jobs{store, "jobs", 2, {.ttl = 30s}},
        gates{store, "api", {"account"}} {}

  TokenBucket user;
  SlidingWindow account;
  ConcurrencyLimiter jobs;
  Gates gates;
};

/// A lease for one call, or one that is false and says who refused.
Lease admit(const Limits& limits, std::string_view user, std::string_view account, Rng& rng) {
  static constexpr const char* names[] = {"the user", "the account", "the fleet", "the gate"};
  const Key place{account, "jobs"};
  const LeaseId id = LeaseId::draw(rng);
  const Scope scope = limits.gates.scope("account", account);
  const std::array steps{limits.user.acquire_step(user), limits.account.acquire_step(account),
                         limits.jobs.acquire_step(place, id), limits.gates.pass_step(scope)};
  std::array<Decision, steps.size()> each;
  std::array<Word, steps.size() * max_output> told;
  std::error_code error;
  const Time asked_at = limits.user.store().clock().now();
  const Decision decision = decide(limits.user.store(), steps, error, each, told);
  if (error) throw std::system_error(error);
  std::cout << user << ": "
            << (decision ? "go"
                         : std::string("wait ") + std::to_string(decision.retry_after.count()) +
                               " us for " + names[decision.step])
            << '\n';
  if (!decision) return {};
  return limits.jobs.adopt(place, id, 1, each[2], output_of(told, steps, 2), asked_at);
}

}  // namespace

int main() {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const Limits limits(*store);
  SeededRng rng(1);

  Lease first = admit(limits, "alice", "acme", rng);
  Lease second = admit(limits, "alice", "acme", rng);
  const Lease full = admit(limits, "bob", "acme", rng);  // two jobs run: nobody was charged
  first.release();
  Lease third = admit(limits, "bob", "acme", rng);
  second.release();
  limits.gates.close(limits.gates.scope("account", "acme"), 2s);  // the API said 429
  const Lease closed = admit(limits, "bob", "acme", rng);
  return !full && !closed && third ? 0 : 1;
}
