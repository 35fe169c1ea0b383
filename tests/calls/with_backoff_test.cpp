// with_backoff(): which scope is closed for how long, and when it gives up.
#include <array>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

struct World {
  VirtualClock clock;
  VirtualClock::AutoAdvance moving{clock};
  std::unique_ptr<Store> store = make_virtual_store(clock);
  Gates gates{*store, "api", {"account", "developer"}, {.ramp = 0s, .spacing = 0s}};
  std::array<Scope, 2> scopes{gates.scope("account", "7"), gates.scope("developer", "x")};
  Time start = clock.now();

  [[nodiscard]] Span passed() const { return clock.now() - start; }
};

}  // namespace

TEST_CASE(
    "a refusal closes the scope that it names for as long as it says, and the call is repeated",
    "[calls][gates]") {
  World world;
  std::vector<Span> calls;
  const int result = with_backoff(world.gates, world.scopes, [&] {
    calls.push_back(world.passed());
    if (calls.size() == 1) throw RateLimited(30s, 1);
    if (calls.size() == 2) throw RateLimited(5s, 0);
    return 42;
  });
  CHECK(result == 42);
  CHECK(calls == std::vector<Span>{0s, 30s, 35s});
}

TEST_CASE("everybody keeps to what one has learnt", "[calls][gates]") {
  World world;
  const auto fails = []() -> int { throw RateLimited(1min, 0); };
  CHECK_THROWS_AS(with_backoff(world.gates, world.scopes, fails, {.attempts = 1}), RateLimited);
  CHECK_THROWS_AS(
      with_backoff(world.gates, world.scopes, [] { FAIL("called"); }, {.deadline = 59s}),
      NotGranted);
  CHECK(world.passed() == 0s);
  with_backoff(world.gates, world.scopes, [&] { CHECK(world.passed() == 60s); }, {.deadline = 60s});
}

TEST_CASE("another error of the API ends it at once, and options are checked", "[calls][gates]") {
  World world;
  const auto fails = [] { throw std::logic_error("not found"); };
  CHECK_THROWS_AS(with_backoff(world.gates, world.scopes, fails), std::logic_error);
  CHECK(world.passed() == 0s);
  const auto works = [] {};
  CHECK_THROWS_WITH(with_backoff(world.gates, world.scopes, works, {.attempts = 0}),
                    "BackoffOptions::attempts must be 1 or more, got 0");
  CHECK_THROWS_WITH(with_backoff(world.gates, {}, works), "with_backoff: there must be a scope");
  const auto lies = [] { throw RateLimited(1s, 2); };
  CHECK_THROWS_WITH(with_backoff(world.gates, world.scopes, lies), "RateLimited: scope 2 of 2");
}

}  // namespace sluice::test
