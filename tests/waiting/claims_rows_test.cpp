// Calls of several limits among others: which of them stand still for a call that is refused by
// another, and its place in each order. Threading: everything on the thread that moves the clock.
#include "tests/catch.hpp"
#include "tests/waiting/claims_bench.hpp"

namespace sluice::test {

using namespace claims;

TEST_CASE("a call is overtaken only while it waits elsewhere for longer than it has waited",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_second(1).burst(1));
  const TokenBucket c(bench.wire, "c", Quota::per_second(9).burst(9));
  bench.wait(10, {{a, "k"}, {c, "k"}});
  bench.run_until(500ms);
  bench.wait(11, {{b, "k"}, {c, "l"}});
  bench.run_until(600ms);
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.run_until(700ms);
  bench.wait(12, {{a, "k"}, {c, "k"}});
  bench.run_until(800ms);
  bench.wait(13, {{b, "k"}, {c, "l"}});
  bench.run_until(10s);
  CHECK(bench.granted_at(12) == 1s);  // the call had waited 400 ms, and had to wait 500 ms more
  CHECK(bench.granted_at(call) == 2s);
  CHECK(bench.ends[call].overtaken == 1);
  CHECK(bench.granted(12));
  CHECK(bench.granted(13));
}

TEST_CASE("a limit stands still for a call no longer than the call has waited for it",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(10).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_hour(1).burst(1));
  bench.wait(10, {{a, "k"}});
  bench.wait(11, {{a, "k"}});
  bench.run_until(50ms);
  bench.wait(12, {{b, "k"}});
  bench.wait(call, {{a, "k"}, {b, "k"}});
  for (int later = 13; later < 20; ++later) bench.wait(later, {{a, "k"}});
  bench.run_until(900ms);
  CHECK(bench.granted_at(19) == 800ms);  // one every 100 ms, as if the call were not there
  CHECK_FALSE(bench.granted(call));
}

TEST_CASE("a limit stands still for a call that waits for a place no longer than it has waited",
          "[claims][rows][leases]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const ConcurrencyLimiter b(bench.wire, "b", 1, {.ttl = 1h});
  bench.wait(10, {{a, "k"}});
  bench.run_until(400ms);
  bench.wait(call, {{a, "k"}, {b, "k"}});  // it waits for 600 ms, and is refused by the other
  bench.wait(11, {{a, "k"}});
  bench.wait(12, {{b, "k"}});
  bench.run_until(5s);
  CHECK(bench.granted_at(11) == 1'600ms + 1us);
  bench.release(12);
  bench.run_until(6s);
  CHECK(bench.granted(call));
}

TEST_CASE("a limit stands still for no call that is not the first where it waits",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_second(1).burst(1));
  bench.wait(10, {{a, "k"}});
  bench.run_until(200ms);
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.wait(11, {{a, "k"}});
  bench.run_until(500ms);
  bench.wait(12, {{b, "k"}});
  bench.run_until(1'200ms);  // the call keeps its turn at one limit, and waits for the other
  CHECK_FALSE(bench.granted(11));
  bench.wait(13, {{b, "k"}}, Deadline::never(), {.priority = 1});
  CHECK(bench.granted_at(11) == 1'200ms);
  bench.run_until(5s);
  CHECK(bench.granted(call));
}

TEST_CASE("a call that has not waited for a limit keeps no turn there", "[claims][rows][leases]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const ConcurrencyLimiter b(bench.wire, "b", 1, {.ttl = 1h});
  bench.wait(10, {{b, "k"}});
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.wait(11, {{a, "k"}});
  CHECK(bench.granted_at(11) == 0s);
}

TEST_CASE("a call that may leave its limit keeps nobody behind it from waiting", "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(5));
  const TokenBucket b(bench.wire, "b", Quota::per_second(1).burst(5));
  REQUIRE(a.try_acquire("k", 5));
  bench.wait(10, {{a, "k", 2}});
  bench.wait(11, {{b, "k"}, {a, "k", 5}});
  bench.wait(call, {{a, "k"}}, 4s);
  CHECK(bench.ends[call].times == 0);
  bench.cancel(11);
  bench.run_until(5s);
  CHECK(bench.granted_at(call) == 3s);
}

TEST_CASE(
    "who is behind a call that may leave its units is refused only if it is too late for both",
    "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(4));
  const TokenBucket b(bench.wire, "b", Quota::per_hour(1).burst(1));
  REQUIRE(a.try_acquire("k", 4));
  bench.wait(10, {{a, "k", 4}, {b, "k"}});
  bench.wait(11, {{a, "k"}}, 4s - 1us);
  CHECK(bench.ends[11].times == 1);
  bench.wait(call, {{a, "k"}}, 4s);
  bench.run_until(1s);
  REQUIRE(TokenBucket(*bench.store, "b", b.quota()).try_acquire("k"));
  bench.run_until(5s);
  CHECK(bench.granted(call));
}

TEST_CASE("an alternative behind another one asks after that has had its last answer",
          "[claims][rows][leases]") {
  Bench bench(10ms);
  const LeaseOptions lease{.ttl = 1h};
  const ConcurrencyLimiter jobs(bench.wire, "jobs", 5, lease);
  jobs.set_wait_queue({.across_processes = false, .recheck = 1h});
  const ConcurrencyLimiter elsewhere(*bench.store, "jobs", 5, lease);
  const Lease most = elsewhere.try_acquire("k", 4);
  Lease one = elsewhere.try_acquire("k");
  Grants granted;
  const auto waits = wait_for(first_of({{{jobs, "k", 5}}, {{jobs, "k"}}}), 1s,
                              [&](std::error_code, Grants end) { granted = std::move(end); });
  bench.run_until(900ms);
  REQUIRE(one.release());  // nobody here is told
  bench.run_until(1'150ms);
  CHECK(granted);
  CHECK(granted.alternative() == 1);
  granted.get<Lease>(0).release_later();
}

TEST_CASE("no limit stands still for a call that waits for a gate, and no gate for a call",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const Gates gates(bench.wire, "gate", {"account"}, {.ramp = 0s, .spacing = 0s});
  const Scope scope = gates.scope("account", 1);
  SECTION("a limit") {
    bench.wait(10, {{a, "k"}});
    bench.wait(call, {{a, "k"}, {gates, scope}});
    bench.wait(11, {{a, "k"}});
    bench.run_until(900ms);
    gates.close(scope, 600ms);
  }
  SECTION("a gate") {
    gates.close(scope, 1s);
    bench.wait(call, {{gates, scope}, {a, "k"}});
    bench.wait(11, {{gates, scope}});
    bench.run_until(900ms);
    bench.wait(10, {{a, "k"}});
  }
  bench.run_until(5s);
  CHECK(bench.granted_at(11) == 1s);
  CHECK(bench.granted(call));
}

TEST_CASE("a turn ends when it has been kept for long enough, whichever else is kept longer",
          "[claims][rows][leases]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per(1, 100ms).burst(1));
  const ConcurrencyLimiter jobs(bench.wire, "jobs", 1, {.ttl = 1h});
  bench.wait(10, {{a, "k"}});
  bench.run_until(800ms);
  bench.wait(call, {{b, "k"}, {a, "k"}, {jobs, "k"}});  // it waits for the second for 200 ms
  bench.run_until(950ms);
  REQUIRE(TokenBucket(*bench.store, "b", b.quota()).try_acquire("k"));
  bench.run_until(1'010ms);
  bench.wait(11, {{jobs, "k"}});
  bench.run_until(1'060ms);  // and has waited for the first for 50 ms
  bench.wait(12, {{b, "k"}});
  bench.wait(13, {{a, "k"}});
  bench.run_until(2s);
  CHECK(bench.granted_at(12) == 1'100ms + 1us);
  CHECK(bench.granted_at(13) == 1'250ms + 1us);
}

TEST_CASE("a call keeps its place in the order of each of two busy limits",
          "[claims][rows][leases]") {
  const auto check = [](Bench& bench, const auto& a, const auto& b, Span hold) {
    const TokenBucket c(bench.wire, "c", Quota::per_second(1'000).burst(100));
    bench.stream(0ms, 90ms, {{a, "k"}, {c, "k"}}, {}, hold);
    bench.stream(45ms, 90ms, {{b, "k"}, {c, "l"}}, {}, hold);
    bench.run_until(1s);
    bench.wait(call, {{a, "k"}, {b, "k"}});
    bench.run_until(60s);
    CHECK(bench.granted(call));
    // As many later calls as the slower limit serves while it is refilled once.
    CHECK(bench.ends[call].overtaken <= 3);
    CHECK(bench.granted_at(call) <= 1'500ms);
  };
  Bench of_rates;
  const auto rate = [&](const char* name) {
    return TokenBucket(of_rates.wire, name, Quota::per_second(10).burst(1));
  };
  check(of_rates, rate("a"), rate("b"), Span::max());
  CHECK(of_rates.grants() >= 2 * 10 * 59);  // nothing is left unused for it
  Bench of_places;
  const auto place = [&](const char* name) {
    return ConcurrencyLimiter(of_places.wire, name, 1, {.ttl = 1h});
  };
  check(of_places, place("a"), place("b"), 100ms);
}

TEST_CASE("calls of three limits in a ring pass on, none far behind those that came later",
          "[claims][rows]") {
  constexpr int most_overtaking = 10;
  Bench bench;
  std::vector<TokenBucket> limits;
  for (const char* name : {"a", "b", "c"}) {
    limits.emplace_back(bench.wire, name, Quota::per_second(10).burst(2));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    bench.stream(Span{static_cast<Word>(i) * 55'000}, 165ms,
                 {{limits[i], "k"}, {limits[(i + 1) % 3], "k"}});
  }
  bench.run_until(60s);
  CHECK(bench.most_overtaken() <= most_overtaking);
  CHECK(bench.grants() >= 60 * 15 * 3 / 4);  // two units each, of 30 a second
}

TEST_CASE("a call of a lower priority has its share of two limits together", "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(10).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_second(10).burst(1));
  const TokenBucket c(bench.wire, "c", Quota::per_second(100).burst(100));
  bench.stream(0ms, 70ms, {{a, "k"}, {c, "k"}}, {.priority = 1});
  bench.stream(45ms, 70ms, {{b, "k"}, {c, "l"}}, {.priority = 1});
  bench.run_until(1s);
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.run_until(10s);
  CHECK(bench.granted(call));
  CHECK(bench.granted_at(call) <= 4s);  // a tenth of each limit is one unit a second
}

TEST_CASE("a call of two keys of one limiter is granted among smaller ones of each",
          "[claims][rows]") {
  constexpr int most_overtaking = 30;  // of 11 a second, at each key while it waits at the other
  Bench bench;
  const TokenBucket bucket(bench.wire, "b", Quota::per_second(10).burst(10));
  bench.stream(0ms, 90ms, {{bucket, "a"}});
  bench.stream(45ms, 90ms, {{bucket, "b"}});
  bench.run_until(3s);
  bench.wait(call, {{bucket, "a", 10}, {bucket, "b", 10}});
  bench.run_until(30s);
  CHECK(bench.granted(call));
  CHECK(bench.ends[call].overtaken <= most_overtaking);
  CHECK(bench.granted_at(call) <= 6s);
}

}  // namespace sluice::test
