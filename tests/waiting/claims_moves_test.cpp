// Calls of several limits while they ask, sleep and move: what that costs, and that nothing is
// missed meanwhile. Threading: everything on the thread that moves the clock.
#include "tests/catch.hpp"
#include "tests/waiting/claims_bench.hpp"

namespace sluice::test {

using namespace claims;

TEST_CASE("what a grant leaves of each of its limits is known of that", "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(3));
  const TokenBucket b(bench.wire, "b", Quota::per_hour(1).burst(1));
  const FixedWindow c(bench.wire, "c", 1, Calendar::every(24h));
  a.set_wait_queue({.across_processes = false, .recheck = 1h});
  REQUIRE(c.try_acquire("k"));
  bench.wait(9, {{c, "k"}, {a, "k"}});  // the queue of the first limit remains
  bench.wait(10, {{a, "k"}, {b, "k"}});
  bench.wait(11, {{a, "k", 3}});
  bench.run_until(1s);
  CHECK(bench.granted_at(11) == 1s);
}

TEST_CASE("over a slow wire, too, a grant of a bucket costs one request", "[claims][rows]") {
  Bench bench(100ms);
  const TokenBucket bucket(bench.wire, "b", Quota::per_second(1).burst(1));
  bucket.set_wait_queue({.across_processes = false, .recheck = 1h});
  for (int name = 0; name < 10; ++name) bench.wait(name, {{bucket, "k"}});
  bench.run_until(500ms);
  const std::uint64_t before = bench.tap.operations;
  bench.run_until(20s);
  CHECK(bench.grants() == 10);
  CHECK(bench.tap.operations - before == 9);
}

TEST_CASE("those behind a call that waits for its units do not ask beside it", "[claims][rows]") {
  Bench bench(100ms);
  const TokenBucket bucket(bench.wire, "b", Quota::per_second(1).burst(10));
  bucket.set_wait_queue({.across_processes = false, .recheck = 1h});
  for (const auto& [name, cost] : {std::pair{0, 10}, {1, 2}, {2, 8}, {3, 1}}) {
    bench.wait(name, {{bucket, "k", cost}});
  }
  bench.run_until(500ms);
  const std::uint64_t before = bench.tap.operations;
  bench.wire.slowest = 0s;  // a blocking call
  bucket.reward("k", 5);    // enough for the second, which leaves some
  bench.wire.slowest = 100ms;
  bench.run_until(20s);
  CHECK(bench.grants() == 4);
  CHECK(bench.tap.operations - before == 1 + 3);
}

TEST_CASE("a call that moves looks again a recheck after it asked all its limits",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per(1, 10s).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per(1, 20s).burst(1));
  for (const TokenBucket* limit : {&a, &b}) {
    limit->set_wait_queue({.across_processes = false, .recheck = 1s});
  }
  REQUIRE(TokenBucket(*bench.store, "b", b.quota()).try_acquire("k"));
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.wait(10, {{a, "k"}});
  bench.run_until(5'500ms);
  const std::uint64_t before = bench.tap.operations;
  b.reward("k", 1);  // the call goes to wait for the other
  bench.run_until(6s - 1us);
  CHECK(bench.tap.operations == before + 1);
  bench.run_until(6s);
  CHECK(bench.tap.operations == before + 2);
}

TEST_CASE("a first waiter whose deadline lies before the refill is refused at once",
          "[claims][rows]") {
  const bool is_alone = GENERATE(true, false);
  const bool across = GENERATE(true, false);
  const Span slowest = GENERATE(Span{0}, Span{1ms});
  Bench bench(slowest);
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_second(1).burst(9));
  a.set_wait_queue({.across_processes = across, .client = 1});
  std::vector<Claim> claims{{a, "k"}};
  if (!is_alone) claims.emplace_back(b, "k");
  // More than may ask at once, so that some come first behind the grant.
  for (int i = 0; i < 20; ++i) bench.wait(10 + i, claims, i == 0 ? Deadline(1h) : Deadline(500ms));
  bench.run_until(20 * slowest);
  CHECK(bench.granted(10));
  for (int name = 11; name < 30; ++name) {
    CHECK(bench.ends[name].times == 1);
    CHECK_FALSE(bench.granted(name));
  }
  CHECK(bench.tap.operations <= 2 * 20);
}

namespace {

/// Two limits and places, all used up; a call that is refused by the one moves to the other.
struct Scene {
  explicit Scene(Span slowest, bool across) : bench(slowest) {
    const WaitQueueOptions options{.across_processes = across, .client = 1, .recheck = 1h};
    for (const TokenBucket* limit : {&a, &b}) limit->set_wait_queue(options);
    jobs.set_wait_queue(options);
    bench.wait(10, {{a, "k"}, {jobs, "k"}});
    bench.run_until(10ms);
    bench.wait(11, {{b, "k"}});
    bench.run_until(20ms);
  }
  /// Asks, and moves from a to b, and to the place.
  void begin(const Deadline& deadline = Deadline::never()) {
    bench.wait(call, {{a, "k"}, {b, "k"}, {jobs, "k"}}, deadline);
    bench.wait(12, {{b, "k"}, {jobs, "k"}, {a, "k"}});
  }
  Bench bench;
  TokenBucket a{bench.wire, "a", Quota::per_second(1'000).burst(1)};
  TokenBucket b{bench.wire, "b", Quota::per_second(900).burst(1)};
  ConcurrencyLimiter jobs{bench.wire, "jobs", 1, {.ttl = 1h}};
};

}  // namespace

TEST_CASE("a call that is cancelled while a request is sent ends once, and leaves all to the next",
          "[claims][rows]") {
  const bool across = GENERATE(true, false);
  const bool is_within = GENERATE(false, true);  // the first request after the release
  for (std::uint64_t number = 1; number < 30; ++number) {
    CAPTURE(number);
    Scene scene(0s, across);
    Bench& bench = scene.bench;
    const std::uint64_t before = bench.tap.operations;
    bench.tap.sent = [&] {
      if (bench.tap.operations == before + number) bench.cancel(is_within ? 12 : call);
    };
    scene.begin();
    bench.run_until(21ms);
    bench.release(10);
    bench.run_until(30ms);
    for (const int name : {call, 12}) bench.release(name);
    bench.run_until(40ms);
    for (const int name : {call, 12}) bench.release(name);
    bench.run_until(50ms);
    CHECK(bench.ends[call].times == 1);
    CHECK(bench.ends[12].times == 1);
    CHECK(bench.granted(is_within ? call : 12));
    CHECK(scene.jobs.waiting("k") + scene.a.waiting("k") + scene.b.waiting("k") == 0);
  }
}

TEST_CASE("a place that comes back while a call asks, moves or enters a line is not missed",
          "[claims][rows][leases]") {
  const bool across = GENERATE(true, false);
  for (const Span slowest : {Span{0}, Span{100us}}) {
    for (Span when{0}; when < 3ms; when += 7us) {
      CAPTURE(slowest, when);
      Scene scene(slowest, across);
      Bench& bench = scene.bench;
      scene.begin();
      bench.run_until(20ms + when);
      bench.release(10);
      bench.run_until(20ms + when + 12 * slowest + 3ms);
      CHECK(bench.granted(call));
      bench.release(call);
      bench.run_until(20ms + when + 24 * slowest + 6ms);
      CHECK(bench.granted(12));
    }
  }
}

TEST_CASE("a refund that arrives while a caller enters the line of all processes is not missed",
          "[claims][rows]") {
  for (Span when{0}; when < 10ms; when += 50us) {
    CAPTURE(when);
    Bench bench(1ms);
    const FixedWindow window(bench.wire, "w", 1, Calendar::every(1h));
    bench.wait(10, {{window, "k"}});
    bench.run_until(when);
    bench.wait(call, {{window, "k"}});
    bench.cancel(10);  // refunded if its request is under way
    const bool is_over = bench.granted(10);
    bench.run_until(when + 20ms);
    CHECK(bench.granted(call) == !is_over);
  }
}

TEST_CASE("a plan that is full is waited for without a ticket, beside calls that have one",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket bucket(bench.wire, "b", Quota::per_second(1).burst(2));
  std::vector<Claim> claims;
  for (int i = 0; i < 16; ++i) claims.emplace_back(bucket, std::to_string(i), 2);
  for (int i = 0; i < 12; ++i) {
    bench.wait(3 * i, claims);
    bench.wait(3 * i + 1, {claims.front()});
    bench.wait(3 * i + 2, {claims.front(), claims.back()});
  }
  bench.run_until(72s);
  CHECK(bench.grants() == 36);
}

}  // namespace sluice::test
