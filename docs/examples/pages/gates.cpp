#include <sluice/limiters/gates.hpp>
#include <sluice/virtual_store.hpp>

#include <array>
#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const Gates gates(make_virtual_store(clock), "ads", {"account", "developer"},
                    {.cap = 1h, .ramp = 1s, .spacing = 100ms, .hashed_kinds = {"developer"}});
  const std::array scopes{gates.scope("account", "acme"), gates.scope("developer", "s3cret")};

  std::cout << gates.pass(scopes) << '\n';
  gates.close(scopes[1], 30s);  // the API said: 429, retry after 30 s, about the developer token

  std::cout << gates.pass(scopes) << '\n';  // step 1 is the scope that refuses
  std::cout << gates.pass(scopes[0]) << '\n';

  clock.advance(30s);  // the gate opens: one call each 100 ms for a second
  std::cout << gates.pass(scopes) << '\n';
  std::cout << gates.pass(scopes) << '\n';
  clock.advance(1s);
  for (int call = 1; call <= 3; ++call) std::cout << gates.pass(scopes) << '\n';
}
