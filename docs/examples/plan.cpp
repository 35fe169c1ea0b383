// Several limits as one decision: a user, the user's account and the whole service, all or nothing.
#include <sluice/sluice.hpp>

#include <iostream>

using namespace sluice;

int main() {
  const auto store = make_memory_store();
  const TokenBucket per_user{*store, "user", Quota::per_second(1).burst(2)};
  const TokenBucket per_account{*store, "account", Quota::per_minute(60).burst(3)};
  const TokenBucket service{*store, "service", Quota::per_second(1000)};

  const char* const names[] = {"the user", "the account", "the service"};
  int admitted = 0;
  for (const char* user : {"alice", "alice", "alice", "bob", "bob"}) {
    const Decision d =
        decide(*store, {per_user.acquire_step(user), per_account.acquire_step("acme"),
                        service.acquire_step("all")});
    if (d) {
      ++admitted;
      std::cout << user << ": go\n";
    } else {
      std::cout << user << ": wait " << d.retry_after.count() << " us for " << names[d.step]
                << '\n';
    }
  }
  return admitted == 3 ? 0 : 1;  // alice twice, bob once: then the account's burst is spent
}
