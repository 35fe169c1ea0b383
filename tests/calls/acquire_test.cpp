// acquire() of several limits: what is granted when, in which order, and what remains uncharged.
#include <array>
#include <thread>

#include "sluice/sluice.hpp"
#include "sluice/testing.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

using Waiting = std::shared_ptr<Probe<Several>>;

/// Callers that wait on one thread, while the test moves the clock.
struct Bench {
  VirtualClock clock;
  std::unique_ptr<Store> inner = make_virtual_store(clock);
  testing::FaultyStore store{*inner};
  Time start = clock.now();
  std::vector<int> granted;        // in order
  std::map<int, Span> granted_at;  // since the start
  std::map<int, Grants> held;
  std::map<int, Decision> refused;
  std::map<int, std::error_code> failed;

  Waiting wait(int name, std::vector<Claim> claims, const Deadline& deadline = Deadline::never(),
               const detail::Caller& caller = {}) {
    return wait_for(
        Several{}, detail::limits_of(claims), deadline,
        [this, name](std::error_code error, Grants grants) {
          if (error) {
            failed[name] = error;
          } else if (!grants) {
            refused[name] = grants.decision();
          } else {
            granted.push_back(name);
            granted_at[name] = clock.now() - start;
            held[name] = std::move(grants);
          }
        },
        caller);
  }
  [[nodiscard]] std::uint64_t operations() const { return store.counts().calls; }
};

}  // namespace

TEST_CASE("a call asks at the hint, and behind a grant of a bucket when its units are there",
          "[claims]") {
  Bench bench;
  const TokenBucket bucket(bench.store, "b", Quota::per_second(1).burst(4));
  const FixedWindow window(bench.store, "w", 5, Calendar::every(1min));
  bucket.set_wait_queue({.across_processes = false, .recheck = 1h});  // at hints alone
  window.set_wait_queue({.across_processes = false, .recheck = 1h});
  (void)window.try_acquire("a", 5);
  const std::uint64_t before = bench.operations();
  bench.wait(1, {{bucket, "a", 4}, {window, "a"}});
  bench.wait(2, {{bucket, "a", 2}, {window, "a"}});
  CHECK(bench.operations() == before + 1);  // the second knows that the first was refused
  bench.clock.advance(1min + 2s);
  CHECK(bench.granted == std::vector{1, 2});
  CHECK(bench.granted_at[2] - bench.granted_at[1] == 2s);
  CHECK(bench.operations() <= before + 4);
  const std::uint64_t then = bench.operations();
  bench.wait(3, {{bucket, "a", 4}, {window, "a"}});
  bench.wait(4, {{bucket, "a", 4}, {window, "a"}}, 2s);  // too early behind the third
  CHECK(bench.refused.count(4) == 1);
  bench.clock.advance(4s);
  CHECK(bench.granted == std::vector{1, 2, 3});
  bench.wait(5, {{bucket, "a", 4}, {window, "a"}}, 4s - 1us);
  REQUIRE(bench.refused.count(5) == 1);
  CHECK(bench.refused[5].retry_after == 4s);
  CHECK(bench.operations() <= then + 4);
}

TEST_CASE("calls of several limits are served in order, whichever limit holds them back",
          "[claims]") {
  Random random("calls of several limits are served in order, whichever limit holds them back");
  CAPTURE(random.repeat());
  constexpr std::uint64_t programs = 25;
  constexpr int calls = 100;
  std::uint64_t operations = 0;
  for (std::uint64_t program = 0; program < programs; ++program) {
    Bench bench;
    const TokenBucket requests(bench.store, "requests", Quota::per_second(2).burst(3));
    const TokenBucket tokens(bench.store, "tokens", Quota::per_second(10).burst(20));
    std::vector<int> order;
    for (int i = 0; i < calls; ++i) {
      order.push_back(i);
      bench.wait(i, {{requests, "a"}, {tokens, "a", random.between(1, 12)}});
      if (random.one_in(3)) bench.clock.advance(Span{random.between(0, 300'000)});
    }
    bench.clock.advance(10min);
    REQUIRE(bench.granted == order);
    operations += bench.operations();
  }
  // A program of 100 calls takes 132 operations with a deviation of 18, 25 programs one of 3.6.
  CHECK(operations <= programs * 150);
}

TEST_CASE("a call waits behind nobody whose limits it does not share", "[claims]") {
  Bench bench;
  const TokenBucket own(bench.store, "own", Quota::per_hour(1));
  const TokenBucket all(bench.store, "all", Quota::per_second(10));
  bench.wait(1, {{own, "alice"}, {all, Key{"x", "all"}}});
  bench.wait(2, {{own, "alice"}, {all, Key{"x", "all"}}});
  bench.wait(3, {{own, "bob"}, {all, Key{"x", "all"}}});
  bench.wait(4, {{all, Key{"x", "all"}}, {own, "carol"}});
  CHECK(bench.granted == std::vector{1, 3, 4});
  bench.clock.advance(1h);
  CHECK(bench.granted == std::vector{1, 3, 4, 2});
}

TEST_CASE("calls of one limit and of several stand in one queue", "[claims]") {
  Bench bench;
  const FixedWindow window(bench.store, "w", 1, Calendar::every(1min));
  const TokenBucket bucket(bench.store, "b", Quota::per_second(10));
  std::vector<int> order;
  std::vector<std::shared_ptr<Probe<FixedWindow>>> alone;
  const auto wait_alone = [&](int name) {
    alone.push_back(wait_for(window, request_of(window, "a", 1), Deadline::never(),
                             [&bench, name](std::error_code, const Decision& decision) {
                               if (decision) bench.granted.push_back(name);
                             }));
  };
  bench.wait(0, {{bucket, "a"}, {window, "a"}});
  wait_alone(1);
  bench.wait(2, {{bucket, "a"}, {window, "a"}});
  wait_alone(3);
  bench.wait(4, {{window, "a"}, {bucket, "a"}});
  bench.clock.advance(10min);
  CHECK(bench.granted == std::vector{0, 1, 2, 3, 4});
}

TEST_CASE("a call waits behind nobody whom its priority or flow puts before, at any of its limits",
          "[claims]") {
  Bench bench;
  const TokenBucket one(bench.store, "one", Quota::per_second(1).burst(100));
  const TokenBucket two(bench.store, "two", Quota::per_second(1).burst(100));
  const TokenBucket free(bench.store, "free", Quota::per_second(1).burst(100));
  (void)one.try_acquire("a", 50);
  (void)two.try_acquire("a", 50);
  bench.wait(1, {{one, "a", 100}});
  bench.wait(2, {{two, "a", 100}});
  bench.wait(3, {{free, "a"}, {two, "a"}});
  CHECK(bench.granted.empty());
  bench.wait(4, {{one, "a"}, {two, "a"}, {free, "a"}}, Deadline::never(), {.priority = 1});
  CHECK(bench.granted == std::vector{4});
  bench.wait(5, {{two, "a"}, {free, "a"}, {one, "a"}}, Deadline::never(), {.flow = "other"});
  CHECK(bench.granted == std::vector{4, 5});
  bench.clock.advance(10min);
  CHECK(bench.granted.size() == 5);
  CHECK(bench.granted.back() == 3);
}

TEST_CASE("the calls of several processes are served in one order", "[claims]") {
  Bench bench;
  struct Process {
    Process(Store& store, std::int64_t client)
        : window(store, "w", 2, Calendar::every(1min)),
          bucket(store, "b", Quota::per_second(1).burst(1)) {
      window.set_wait_queue({.client = client});
      bucket.set_wait_queue({.client = client});
    }
    FixedWindow window;
    TokenBucket bucket;
  };
  std::array<Process, 3> processes{Process(bench.store, 1), Process(bench.store, 2),
                                   Process(bench.store, 3)};
  Random random("the calls of several processes are served in one order");
  CAPTURE(random.repeat());
  std::vector<int> order;
  for (int i = 0; i < 24; ++i) {
    const Process& mine = processes[random.below(processes.size())];
    bench.wait(i, {{mine.window, "a"}, {mine.bucket, "a"}});
    order.push_back(i);
    bench.clock.advance(10ms);
  }
  bench.clock.advance(1h);
  CHECK(bench.granted == order);
}

TEST_CASE("a wait that cannot succeed in time is refused at once, with the limit that says so",
          "[claims]") {
  Bench bench;
  const TokenBucket bucket(bench.store, "b", Quota::per_second(1).burst(10));
  const FixedWindow window(bench.store, "w", 1, Calendar::every(1min));
  const ConcurrencyLimiter jobs(bench.store, "jobs", 1, {.ttl = 1h});
  (void)bucket.try_acquire("a", 10);
  (void)window.try_acquire("a");
  const Span left = window.peek("a").retry_after;
  bench.wait(1, {{bucket, "a", 5}, {window, "a"}}, left - 1us);
  REQUIRE(bench.refused.count(1) == 1);
  CHECK(bench.refused[1].step == 1);
  CHECK(bench.refused[1].retry_after == left);

  // A place may become free at any time, but the tokens come too late.
  const Lease held = jobs.try_acquire("a");
  bench.wait(2, {{jobs, "a"}, {bucket, "a", 5}}, 5s - 1us);
  REQUIRE(bench.refused.count(2) == 1);
  CHECK(bench.refused[2].step == 1);
  CHECK(bench.refused[2].retry_after == 5s);
  bench.wait(3, {{jobs, "a"}, {bucket, "a", 5}}, 6s);
  CHECK(bench.refused.count(3) == 0);
  bench.clock.advance(6s);
  REQUIRE(bench.refused.count(3) == 1);
  CHECK(bench.refused[3].step == 0);
}

TEST_CASE("a grant of several limits can be settled and refunded, each as it is", "[claims]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket tokens(*store, "t", Quota::per_hour(100));
  const SlidingWindow windows(*store, "w", {{10, 1h}});
  const SlotLock lock(*store, "l", 1s);
  const ConcurrencyLimiter jobs(*store, "j", 1);
  Grants granted = acquire({{tokens, "a", 50}, {windows, "a", 3}, {lock, "a"}, {jobs, "a"}}, 0s);
  REQUIRE(granted);
  CHECK(granted.size() == 4);
  CHECK(granted.decision(1).remaining == 7);
  CHECK(granted.get<SlotPermit>(2).valid_at(clock.now()));
  CHECK(granted.get<Lease>(3));
  CHECK_THROWS_WITH(granted.get<Lease>(0), "the grant of claim 0 of 4, \"t\", is of another type");
  CHECK_THROWS_WITH(granted.settle(4, 1), "Grants: no claim 4, allowed 0 to 3");
  CHECK_THROWS_WITH(Grants().settle(0, 1), "Grants: no claim 0: nothing was granted");
  CHECK_THROWS_AS(granted.decision(4), std::out_of_range);
  CHECK_THROWS_WITH(granted.settle(2, 1), "\"l\" has no settle()");
  CHECK_THROWS_WITH(granted.settle(0, -1), Catch::Contains("cost -1, allowed 0 to"));
  CHECK(tokens.peek("a").remaining == 50);
  granted.settle(0, 20);
  CHECK(tokens.peek("a").remaining == 80);
  granted.settle(1, 5);
  CHECK(windows.peek("a").remaining == 5);

  Grants second = acquire({{tokens, "b", 50}, {windows, "b", 3}, {jobs, "b"}}, 0s);
  second.refund();
  CHECK(tokens.peek("b").remaining == 100);
  CHECK(windows.peek("b").remaining == 10);
  CHECK(jobs.peek("b").remaining == 1);
}

TEST_CASE("what was moved from is no grant", "[claims]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const ConcurrencyLimiter jobs(*store, "j", 1);
  Grants first = acquire({{jobs, "a"}}, 0s);
  REQUIRE(first);
  Grants second = std::move(first);
  CHECK_FALSE(first);
  CHECK_FALSE(first.decision().allowed);
  CHECK(first.size() == 0);
  CHECK(second);
  CHECK(jobs.peek("a").remaining == 0);
  first = std::move(second);
  CHECK_FALSE(second);
  CHECK(first);
  CHECK(jobs.peek("a").remaining == 0);
  first = Grants();
  CHECK(jobs.peek("a").remaining == 1);
  Lease lease = jobs.acquire("a", 1, 0s);
  const Lease moved = std::move(lease);
  CHECK_FALSE(lease);
  CHECK(moved);
}

TEST_CASE("what was refunded is not given back again", "[claims]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket tokens(*store, "t", Quota::per_hour(100));
  const SlidingWindow windows(*store, "w", {{100, 1h}});
  REQUIRE(tokens.try_acquire("a", 50));
  REQUIRE(windows.try_acquire("a", 50));
  const std::vector<Claim> claims{{tokens, "a", 20}, {windows, "a", 20}};
  Grants granted = acquire(claims, 0s);
  for (int i = 0; i < 2; ++i) granted.refund();
  for (std::size_t claim = 0; claim < 2; ++claim) granted.settle(claim, 5);
  CHECK(tokens.peek("a").remaining == 50);
  CHECK(windows.peek("a").remaining == 50);
  const Call once(claims, {.attempts = 1});
  const auto refunds = [](Grants& grants) {
    grants.refund();
    throw RateLimited(1s);
  };
  CHECK_THROWS_AS(once(refunds), RateLimited);
  CHECK(tokens.peek("a").remaining == 50);
  CHECK(windows.peek("a").remaining == 50);
}

TEST_CASE("a claim is settled once, and what then stands charged is refunded", "[claims]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  testing::FaultyStore store(*inner);
  const TokenBucket tokens(store, "t", Quota::per_hour(100));
  const SlidingWindow windows(store, "w", {{100, 1h}});
  const FixedWindow fixed(store, "f", 100, Calendar::every(1h));
  const SlidingWindowCounter counter(store, "c", {100, 1h});
  const std::vector<Claim> claims{
      {tokens, "a", 20}, {windows, "a", 20}, {fixed, "a", 20}, {counter, "a", 20}};
  const auto left = [&] {
    return std::vector{tokens.peek("a").remaining, windows.peek("a").remaining,
                       fixed.peek("a").remaining, counter.peek("a").remaining};
  };
  const auto all = [](Word units) { return std::vector<Word>(4, units); };
  REQUIRE(acquire({{tokens, "a", 40}, {windows, "a", 40}, {fixed, "a", 40}, {counter, "a", 40}}, 0s)
              .decision()
              .allowed);
  const Word actual = GENERATE(0, 5, 20, 50);
  Grants granted = acquire(claims, 0s);
  REQUIRE(left() == all(40));
  for (std::size_t claim = 0; claim < 4; ++claim) {
    store.fail_all(testing::Fault::not_executed());
    CHECK_THROWS_AS(granted.settle(claim, actual), std::system_error);
    store.heal();
    granted.settle(claim, actual);  // which had failed
    CHECK_THROWS_WITH(granted.settle(claim, 0), Catch::Contains("was settled before"));
  }
  CHECK(left() == all(60 - actual));
  granted.refund();
  CHECK(left() == all(60 - std::max<Word>(actual - 20, 0)));  // the grant, not what came on top
}

TEST_CASE("blocked threads wait for several limits", "[claims]") {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "b", Quota::per_second(1).burst(1));
  const FixedWindow window(*store, "w", 4, Calendar::every(1min));
  const Time start = clock.now();
  std::vector<std::thread> threads;
  std::atomic<int> granted{0};
  std::atomic<Time> last{start};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const KnownThread registered(clock);
      if (const Grants both = acquire({{bucket, "a"}, {window, "a"}}, 1h)) ++granted;
      last = std::max(last.load(), clock.now());
    });
  }
  ManualResetEvent none;
  while (granted < 4) (void)clock.wait_until(clock.now() + 1ms, none);
  for (auto& thread : threads) thread.join();
  CHECK(last.load() - start >= 3s);
  StopSource stop;
  stop.request_stop();
  std::error_code error;
  CHECK_FALSE(acquire({{bucket, "a"}, {window, "a"}}, 1h, {.stop = stop.get_token()}, error)
                  .decision()
                  .allowed);
  CHECK(error == Errc::cancelled);
}

TEST_CASE("what is wrong with claims is said", "[claims]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const auto other = make_virtual_store(clock);
  const TokenBucket bucket(*store, "b", Quota::per_second(1).burst(1));
  const TokenBucket elsewhere(*other, "e", Quota::per_second(1));
  CHECK_THROWS_WITH(acquire(std::span<const Claim>{}, 0s), "0 claims, allowed 1 to 16");
  const std::vector<Claim> many(17, Claim(bucket, "a"));
  CHECK_THROWS_WITH(acquire(many, 0s), "17 claims, allowed 1 to 16");
  CHECK_THROWS_WITH(acquire({{bucket, "a"}, {elsewhere, "a"}}, 0s),
                    "claims of one call must be on one store; \"e\" is on another than \"b\"");
  std::error_code error;
  (void)acquire({{bucket, "a"}, {elsewhere, "a"}}, 0s, {}, error);
  CHECK(error == Errc::invalid_plan);
  (void)acquire({{bucket, "a"}, {bucket, "a"}}, 0s, {}, error);
  CHECK(error == Errc::duplicate_key);
  (void)acquire({{bucket, "b"}, {bucket, "a", 2}}, 0s, {}, error);
  CHECK(error == Errc::cost_exceeds_capacity);
  (void)acquire({{bucket, "b"}}, 0s, {.priority = 4}, error);
  CHECK(error == Errc::invalid_argument);
  CHECK_THROWS_WITH(acquire({{bucket, "b"}, {bucket, "a", 2}}, 0s), Catch::Contains("cost 2"));
}

}  // namespace sluice::test
