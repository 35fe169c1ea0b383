// ObservedStore: which calls are decisions, of which limiter, and that the calls stay as they are.
#include "sluice/observed_store.hpp"

#include <array>
#include <bitset>
#include <memory>

#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/core/async_store.hpp"
#include "tests/observe/events.hpp"
#include "tests/support/wire_store.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

TEST_CASE("a decision is told with its limiter, key and cost", "[observe]") {
  Observed o;
  const TokenBucket bucket(o.store, "api", Quota::per_second(10).burst(5));
  CHECK(bucket.try_acquire("alice", 3));
  CHECK_FALSE(bucket.try_acquire("bob", 5).remaining > 0);
  CHECK_FALSE(bucket.try_acquire("alice", 3));
  CHECK_THROWS(bucket.try_acquire("alice", 6));
  CHECK(o.events.take() ==
        Lines{"decided api alice 3 allowed", "decided api bob 5 allowed",
              "decided api alice 3 refused",
              "decided api alice 6 " + make_error_code(Errc::cost_exceeds_capacity).message()});
}

TEST_CASE("a plan is one decision, of the limiter that decided", "[observe]") {
  Observed o;
  const TokenBucket user(o.store, "user", Quota::per_second(1).burst(2));
  const TokenBucket all(o.store, "all", Quota::per_second(1).burst(3));
  const auto ask = [&](const char* name) {
    return decide(o.store, {user.acquire_step(name), all.acquire_step("-")});
  };
  CHECK(ask("a"));
  CHECK(ask("a"));
  CHECK_FALSE(ask("a"));
  CHECK(ask("b"));
  CHECK_FALSE(ask("b"));
  CHECK(o.events.take() == Lines{"decided user a 1 allowed", "decided user a 1 allowed",
                                 "decided user a 1 refused", "decided all - 1 allowed",
                                 "decided all - 1 refused"});
}

TEST_CASE("every form of a call is told once, and what asks for nothing is no decision",
          "[observe]") {
  Observed o;
  const TokenBucket bucket(o.store, "api", Quota::per_hour(100));
  const std::array steps{bucket.acquire_step("a")};
  const Lines one{"decided api a 1 allowed"};
  (void)decide(o.store, steps[0]);
  CHECK(o.events.take() == one);
  (void)decide(o.store, Plan(steps));
  CHECK(o.events.take() == one);
  (void)bucket.future_try_acquire("a").get();
  CHECK(o.events.take() == one);
  bucket.try_acquire_then("a", 1, [](std::error_code, const Decision&) {});
  CHECK(o.events.take() == one);
  const std::array plans{Plan(steps), Plan(steps)};
  std::array<Decision, 2> decisions;
  std::array<std::error_code, 2> errors;
  decide_batch(o.store, plans, decisions, errors);
  CHECK(o.events.take() == Lines{one[0], one[0]});
  auto grant = bucket.reserve("a", 3);
  (void)o.events.take();
  (void)bucket.peek("a");
  bucket.refund("a", grant, 1);
  bucket.settle("a", grant, 1);
  CHECK(o.events.take().empty());
}

TEST_CASE("an alternative that was not asked is not told", "[observe]") {
  Observed o;
  const TokenBucket first(o.store, "first", Quota::per_hour(1).burst(1));
  const TokenBucket second(o.store, "second", Quota::per_hour(1).burst(1));
  const auto ask = [&] { return acquire(first_of({{{first, "k"}}, {{second, "k"}}}), 1s); };
  const Grants one = ask();
  CHECK(one);
  CHECK(o.events.take() == Lines{"wait first k begun", "decided first k 1 allowed (wait)",
                                 "wait first k granted after 0 us"});
  const Grants two = ask();
  CHECK(two);
  CHECK(o.events.take() == Lines{"wait first k begun", "decided first k 1 refused (wait)",
                                 "decided second k 1 allowed (wait)",
                                 "wait first k granted after 0 us"});
}

TEST_CASE("a store that answers later is observed, and its time measured", "[observe]") {
  const std::string long_key = "a key that is longer than any buffer inside a string";
  struct Times final : Observer {
    void decided(const DecisionEvent& event) override {
      CHECK(event.store == "far");
      CHECK(event.part == 7);
      told.emplace_back(event.limiter(), event.key());
      took.push_back(event.took);
    }
    std::vector<std::pair<std::string, std::string>> told;
    std::vector<Span> took;
  } times;
  VirtualClock clock;
  const auto near = make_virtual_store(clock);
  WireStore far(*near);
  far.parts = [](const Key&) { return StorePart{.index = 7}; };
  ObservedStore store(far, times, "far");
  const TokenBucket bucket(store, "api", Quota::per_second(10));
  for (int i = 0; i < 3; ++i) {
    bool answered = false;
    {
      std::string key = long_key;
      bucket.try_acquire_then(key, 1, [&](std::error_code, const Decision&) { answered = true; });
      key.assign(key.size(), 'x');  // the copy is what is told
    }
    clock.advance(5ms);
    far.deliver_all();
    CHECK(answered);
    CHECK(times.told.back() == std::pair(std::string("api"), long_key));
  }
  CHECK(times.took == std::vector<Span>{5ms, 5ms, 5ms});
}

TEST_CASE("requests under way when the store ends are told, and end", "[observe]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  Events events;
  int ended = 0;
  {
    testing::FaultyStore faulty(*inner);
    faulty.fail_all(testing::Fault::none().late(1s));
    ObservedStore store(faulty, events);
    const TokenBucket bucket(store, "api", Quota::per_second(10));
    bucket.try_acquire_then("a", 1, [&](std::error_code error, const Decision&) {
      if (error) ++ended;
    });
    CHECK(ended == 0);
  }
  CHECK(ended == 1);
  CHECK(events.take() == Lines{"decided api a 1 " + make_error_code(Errc::unknown).message()});
}

TEST_CASE("calls from several threads are told each", "[observe]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  AsyncStore far(*inner);
  Metrics metrics;
  ObservedStore store(far, metrics);
  const TokenBucket bucket(store, "api", Quota::per_hour(150));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) (void)bucket.try_acquire("k");
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(metrics.counts("api").allowed == 150);
  CHECK(metrics.counts("api").refused == 50);
}

TEST_CASE("what an observer throws is ignored", "[observe]") {
  struct Throws final : Observer {
    void decided(const DecisionEvent& /*event*/) override { fail(0); }
    void wait_changed(const WaitEvent& /*event*/) override { fail(1); }
    void lease_changed(const LeaseEvent& /*event*/) override { fail(2); }
    void gate_changed(const GateEvent& /*event*/) override { fail(3); }
    void try_failed(const FailedTryEvent& /*event*/) override { fail(4); }
    void breaker_changed(const BreakerEvent& /*event*/) override { fail(5); }
    void fail(std::size_t event) {
      told.set(event);
      throw 7;
    }
    std::bitset<6> told;
  } throws;
  VirtualClock clock;
  ObservedStore store(make_virtual_store(clock), throws);
  const ConcurrencyLimiter places(store, "p", 1);
  const Lease a = places.try_acquire("a");
  const Lease b = places.acquire("b", 1, 0s);
  CHECK((a && b));

  const Gates gates(store, "ads", {"account"});
  const Scope scope = gates.scope("account", "acme");
  CHECK(gates.close(scope, 3s));
  CHECK_FALSE(gates.pass(scope));

  const TokenBucket bucket(store, "api", Quota::per_second(1000));
  const Call call({{bucket, "a"}}, {.attempts = 1});
  CHECK_THROWS_AS(call([] { throw Transient(); }), Transient);

  CircuitBreaker breaker(clock, {.failures = 1}, observe_breaker(throws, "redis"));
  breaker.answer(breaker.ask(), CircuitBreaker::Result::failure);
  CHECK(breaker.state() == CircuitBreaker::State::open);
  CHECK(throws.told.all());
}

TEST_CASE("a SharedSlidingWindow is told under its name, whatever its configuration", "[observe]") {
  Observed o;
  for (int i = 0; i < 2; ++i) {
    const SharedSlidingWindow rate(o.store, "rate");
    rate.configure("a", RateType::per_client, 1, 1min, SpentUnits::forgotten);
    CHECK(rate.try_acquire("a"));
    CHECK_FALSE(rate.try_acquire("a"));
    CHECK(o.events.take() == Lines{"decided rate a 1 allowed", "decided rate a 1 refused"});
  }
}

TEST_CASE("closures of gates are told", "[observe]") {
  Observed o;
  const Gates gates(o.store, "ads", {"account"}, {.cap = 10s});
  const Scope scope = gates.scope("account", "acme");
  gates.close(scope, 3s);
  gates.close(scope, 1h);
  gates.close(scope, 0s);
  Step longer = gates.close_step(scope, 3s);
  longer.args[4] = Span{1h}.count();  // which the rule caps
  (void)decide(o.store, longer);
  gates.open(scope);
  const Word now = to_word(o.clock.now());
  const std::string scope_of_ads = "gate ads account=acme";
  CHECK(o.events.take() == Lines{scope_of_ads + " closed until " + std::to_string(now + 3'000'000),
                                 scope_of_ads + " closed until " + std::to_string(now + 10'000'000),
                                 scope_of_ads + " closed until " + std::to_string(now + 10'000'000),
                                 scope_of_ads + " open"});
  const TokenBucket empty(o.store, "empty", Quota::per_hour(1).burst(1));
  (void)empty.try_acquire("a");
  (void)o.events.take();
  CHECK_FALSE(decide(o.store, {gates.close_step(scope, 3s), empty.acquire_step("a")}));
  CHECK(o.events.take() == Lines{"decided empty a 1 refused"});  // and nothing is closed
  CHECK(gates.pass(scope));
  CHECK(o.events.take() == Lines{"decided ads account=acme 1 allowed"});
  CHECK(gates.acquire(scope, 1s));
  CHECK(o.events.take().front() == "wait ads account=acme begun");
}

}  // namespace sluice::test
