#include <sluice/http.hpp>
#include <sluice/limit_table.hpp>
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <memory>
#include <string_view>

using namespace sluice;

LimitList<Quota> limits(const Quota& gold) {
  LimitList list(Quota::per_minute(60).burst(2));  // every key, and requests without one
  list.tier("gold", gold).assign("alice", "gold");
  list.deny("mallory");
  return list;
}

/// The handler of a server. Any HTTP library will do; here a response is what is printed.
void serve(const http::RequestLimit<TokenBucket>& limit, std::string_view api_key) {
  const std::string_view key = api_key.empty() ? "anonymous" : api_key;
  const http::Admission admission = limit.admit(key);
  std::cout << key << ": " << admission.status;
  admission.headers.for_each([](std::string_view name, std::string_view value) {
    if (name == "RateLimit" || name == "Retry-After") std::cout << ", " << name << ": " << value;
  });
  std::cout << '\n';
}

int main() {
  VirtualClock clock;  // stands still, so that each run prints the same
  const auto table = std::make_shared<QuotaTable>(limits(Quota::per_second(10).burst(20)));
  const TokenBucket bucket(make_virtual_store(clock), "api", table);
  const http::RequestLimit limit(bucket);
  for (int request = 1; request <= 3; ++request) serve(limit, "bob");
  serve(limit, "alice");
  serve(limit, "mallory");
  serve(limit, "");

  // The operator changes a tier while the server runs. What alice has spent stays spent.
  table->replace(limits(Quota::per_second(50).burst(100)));
  serve(limit, "alice");
}
