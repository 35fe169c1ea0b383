// A server that describes its limit in response headers, and a client that obeys them. No HTTP
// library is needed.
#include <sluice/http.hpp>
#include <sluice/sluice.hpp>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace std::chrono_literals;

/// The server: decides, and describes the decision.
std::vector<std::pair<std::string, std::string>> serve(const TokenBucket& limiter,
                                                       std::string_view api_key) {
  const http::Policy policy("api", limiter.quota());
  return http::limit_headers(policy, limiter.try_acquire(api_key)).strings();
}

int main() {
  VirtualClock clock;  // stands still, so that each run prints the same
  const auto store = make_virtual_store(clock);
  const TokenBucket server(*store, "server", Quota::per_second(10).burst(2));
  const Gates gates(*store, "client", {"api-key"});
  const Scope scope = gates.scope("api-key", "fleet");

  for (int call = 1; call <= 3; ++call) {
    if (const Decision gate = gates.pass(scope); !gate) {
      std::cout << "call " << call << " is held back for " << gate.retry_after.count() << " us\n";
      continue;
    }
    const auto headers = serve(server, "fleet");
    std::cout << "response " << call << '\n';
    for (const auto& [name, value] : headers) std::cout << "  " << name << ": " << value << '\n';
    // If a refusal does not say how long, a Call makes a growing pause; these calls are served.
    http::close_gate(gates, scope, http::parse_feedback(headers, clock.now()), 0s);
  }
}
