// Testing code that waits, as docs/testing.md shows it.
#include <sluice/testing.hpp>
#include <sluice/testing/catch2.hpp>

#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

/// Sends every message, as fast as the API allows and no faster.
int send_all(const TokenBucket& limit, int messages) {
  int sent = 0;
  while (sent < messages && limit.acquire("api", 1, 10s)) ++sent;
  return sent;
}

TEST_CASE_METHOD(VirtualFixture, "a hundred messages take ten seconds, and three operations each") {
  const TokenBucket limit(store, "messages", Quota::per_second(10).burst(1));

  const VirtualClock::AutoAdvance moving(clock);
  CHECK(send_all(limit, 101) == 101);
  CHECK(clock.now() == VirtualClock::default_start + 10s);
  CHECK_THAT(trace(), spacing_at_least(100ms) && at_most_operations_per_grant(3));
}

TEST_CASE_METHOD(VirtualFixture, "an answer that comes late is waited for, in virtual time") {
  const TokenBucket limit(store, "api", Quota::per_second(10));
  faults.play(FaultScript("delay(50ms)"));

  const VirtualClock::AutoAdvance moving(clock);
  CHECK(limit.try_acquire("alice"));
  CHECK(clock.now() == VirtualClock::default_start + 50ms);
}

TEST_CASE_METHOD(VirtualFixture, "callbacks come when the clock reaches them") {
  const TokenBucket limit(store, "api", Quota::per_second(10));
  faults.play(FaultScript("delay(50ms) delay(20ms)"));
  std::string order;
  limit.try_acquire_then("alice", 1, [&](std::error_code, Decision) { order += "alice "; });
  limit.try_acquire_then("bob", 1, [&](std::error_code, Decision) { order += "bob "; });

  move(at(20ms));
  CHECK(order == "bob ");
  CHECK(advance_until_idle() == 30ms);
  CHECK(order == "bob alice ");
}
