#include <sluice/limit_table.hpp>
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  LimitList list(Quota::per_second(10));  // everyone
  list.tier("gold", Quota::per_second(100));
  list.assign("alice", "gold");
  list.limit("bob", Quota::per_minute(3));
  list.allow("health");
  list.deny("mallory");

  VirtualClock clock;
  const auto table = std::make_shared<QuotaTable>(list);
  const TokenBucket bucket(make_virtual_store(clock), "api", table);
  for (const char* key : {"alice", "bob", "carol", "health", "mallory"}) {
    std::cout << key << ": " << bucket.try_acquire(key) << '\n';
  }

  LimitList next(Quota::per_second(10));
  next.tier("gold", Quota::per_second(50)).assign("alice", "gold").assign("bob", "gold");
  for (const std::string& line : table->replace(next)) std::cout << line << '\n';
  std::cout << "bob: " << bucket.try_acquire("bob") << '\n';
}
