// Call: what a call under limits and gates is charged, and what a refusal by the API changes.
#include <array>
#include <memory>
#include <vector>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

struct World {
  VirtualClock clock;
  VirtualClock::AutoAdvance moving{clock};
  std::unique_ptr<Store> store = make_virtual_store(clock);
  TokenBucket requests{*store, "requests", Quota::per_second(10).burst(10)};
  TokenBucket tokens{*store, "tokens", Quota::per_hour(1000)};
  ConcurrencyLimiter places{*store, "places", 2};
  Gates gates{*store, "api", {"account", "developer"}, {.ramp = 0s, .spacing = 0s}};
  Scope account = gates.scope("account", 7);
  Scope developer = gates.scope("developer", "x");
  std::vector<Claim> claims{{requests, "a"},
                            {gates, account},
                            {tokens, "a", Estimate{300}},
                            {places, "a"},
                            {gates, developer}};
  Time start = clock.now();

  [[nodiscard]] Span passed() const { return clock.now() - start; }
};

}  // namespace

TEST_CASE("a call takes of all limits, and is charged its true cost", "[calls][claims]") {
  World world;
  const Call call(world.claims);
  CHECK(call([&](Grants& granted) {
          CHECK(granted.size() == 5);
          CHECK(granted.get<Lease>(3));
          CHECK(world.tokens.peek("a").remaining == 700);
          CHECK(world.places.peek("a").remaining == 1);
          return Costed<std::string>{"answer", 120};
        }) == "answer");
  CHECK(world.tokens.peek("a").remaining == 880);
  CHECK(world.requests.peek("a").remaining == 9);
  CHECK(world.places.peek("a").remaining == 2);
  call([] {});
  CHECK(world.tokens.peek("a").remaining == 580);
}

TEST_CASE("a result whose cost cannot be charged is in the exception", "[calls][claims]") {
  World world;
  testing::FaultyStore store(*world.store);
  const TokenBucket tokens(store, "tokens", Quota::per_hour(1000));
  const SlidingWindow windows(store, "w", {{1000, 1h}});
  const Call call({{tokens, "a", Estimate{300}}, {windows, "a", Estimate{300}}});
  const auto costs = [](Word actual) {
    return [actual] { return Costed<std::unique_ptr<int>>{std::make_unique<int>(7), actual}; };
  };
  CHECK(*call(costs(200)) == 7);
  CHECK(*call(costs(1'500)) == 7);
  bool is_thrown = false;
  windows.reset("a");
  world.clock.advance(2h);
  try {
    (void)call([&] {
      store.fail_all(testing::Fault::not_executed(Errc::not_connected));
      return costs(400)();
    });
  } catch (NotSettled<std::unique_ptr<int>>& error) {
    is_thrown = true;
    CHECK(*error.result() == 7);
    CHECK(error.code() == Errc::not_connected);
    CHECK(std::string(error.what()).find("Grants::settle: ") == 0);
  }
  CHECK(is_thrown);
}

TEST_CASE("a cost replaces what the function has settled by the limiter itself",
          "[calls][claims]") {
  World world;
  const Call call({{world.tokens, "a", Estimate{300}}});
  for (const Word by_itself : {100, 450}) {
    for (const Word actual : {50, 200, 500}) {
      CAPTURE(by_itself, actual);
      world.tokens.reset("a");
      const Word full = world.tokens.peek("a").remaining;
      (void)call([&](Grants& grants) {
        (void)world.tokens.settle("a", grants.get<Reservation>(0), by_itself);
        return Costed<int>{1, actual};
      });
      // What was charged on top of a grant is not refunded.
      const Word stays = by_itself > 300 ? by_itself - 300 : 0;
      CHECK(world.tokens.peek("a").remaining == full - std::max(actual, stays));
    }
  }
}

TEST_CASE("a cost that is not in order is neither settled nor learned, and the result is kept",
          "[calls][claims]") {
  World world;
  const SlidingWindow windows(*world.store, "windows", {{1000, 1h}});
  const LearnedRate rate(*world.store, "rate");
  Estimator estimator({.least = 1});
  const LearnedEstimate learned = estimator.of("model", 300);
  const Call call(
      {{world.tokens, "a", learned}, {windows, "a", Estimate{300}}, {rate, "a", Estimate{1}}});
  const auto balances = [&] {
    return std::array{world.tokens.peek("a"), windows.peek("a"), rate.peek("a")};
  };
  struct Row {
    Word cost;
    bool settles_itself;
    Errc code;
    std::string what;
  };
  constexpr Word most = Word{1} << 40;
  const std::string allowed = ", allowed 0 to 1099511627776";
  for (const Row& row :
       {Row{120, true, Errc::invalid_argument, "\"windows\" was settled before, by the function"},
        Row{-1, false, Errc::invalid_cost, "cost -1" + allowed},
        Row{word_limit + 1, false, Errc::invalid_cost, "cost 4503599627370497" + allowed},
        Row{most + 1, false, Errc::invalid_cost, "cost 1099511627777" + allowed}}) {
    CAPTURE(row.what);
    world.tokens.reset("a");
    windows.reset("a");
    rate.reset("a");
    auto before = balances();
    std::string result;
    try {
      (void)call([&](Grants& grants) {
        if (row.settles_itself) grants.settle(1, 10);
        before = balances();
        return Costed<std::string>{"answer", row.cost};
      });
    } catch (const NotSettled<std::string>& error) {
      result = error.result();
      CHECK(error.code() == row.code);
      CHECK(std::string(error.what()).find("Grants::settle: " + row.what + ": ") == 0);
    }
    CHECK(result == "answer");
    CHECK(before[0].remaining == 700);
    CHECK(before[1].remaining == (row.settles_itself ? 990 : 700));
    CHECK(balances() == before);
    CHECK(learned.cost().value() == 300);
  }
  CHECK_THROWS_AS(guarded(windows, "b", 1, 0s, [] { return Costed<int>{1, -1}; }), NotSettled<int>);
  CHECK(windows.peek("b").remaining == 999);
}

TEST_CASE("the highest cost of a call is charged by every limiter", "[calls][claims]") {
  World world;
  const SharedTokenBucket shared_bucket(*world.store, "shared bucket");
  shared_bucket.configure("a", Quota::per_hour(1000));
  const SharedSlidingWindow shared_window(*world.store, "shared window");
  shared_window.configure("a", RateType::overall, 1000, 1h);
  const FixedWindow window(*world.store, "window", 1000, Calendar::daily());
  const SlidingWindowCounter counter(*world.store, "counter", {1000, 1h});
  const SlidingWindow windows(*world.store, "windows", {{1000, 1h}});
  const LearnedRate rate(*world.store, "rate");
  Estimator estimator({.least = 1});
  const LearnedEstimate learned = estimator.of("model", 1);
  const Call call({{world.tokens, "a", learned},
                   {shared_bucket, "a", learned},
                   {shared_window, "a", learned},
                   {window, "a", learned},
                   {counter, "a", learned},
                   {windows, "a", learned},
                   {rate, "a", learned}});
  CHECK(call([] { return Costed<int>{7, LearnedEstimate::max_cost}; }) == 7);
  CHECK(learned.cost().value() == LearnedEstimate::max_cost);
  CHECK(world.tokens.peek("a").remaining == 0);
  CHECK(shared_bucket.peek("a").remaining == 0);
  CHECK(shared_window.peek("a").remaining == 0);
  CHECK(window.peek("a").remaining == 0);
  CHECK(counter.peek("a").remaining == 0);
  CHECK(windows.peek("a").remaining == 0);
  CHECK(rate.peek("a").retry_after > 59s);
}

TEST_CASE("what the API did not serve is refunded, and its gate closed", "[calls][claims]") {
  World world;
  int calls = 0;
  const int result = Call(world.claims)([&] {
    if (++calls == 1) throw RateLimited(30s, 1);
    CHECK(world.passed() == 30s);
    CHECK(world.places.peek("a").remaining == 1);
    return 42;
  });
  CHECK(result == 42);
  CHECK(world.tokens.peek("a").remaining == 700);
  calls = 0;
  const auto fails = [&]() -> Costed<int> {
    ++calls;
    CHECK(world.gates.peek(world.account).allowed);
    throw RateLimited(5s);
  };
  const Call once(world.claims, {.attempts = 1});
  CHECK_THROWS_AS(once(fails), RateLimited);
  CHECK(calls == 1);
  CHECK(world.gates.peek(world.account).retry_after == 5s);
  CHECK(world.gates.peek(world.developer).allowed);
  CHECK(world.tokens.peek("a").remaining == 700);
  CHECK(world.requests.peek("a").remaining == 9);
  CHECK(world.places.peek("a").remaining == 2);
}

TEST_CASE("without a gate, a refused call alone pauses", "[calls][claims]") {
  World world;
  std::vector<Span> calls;
  const auto fails = [&]() -> int {
    calls.push_back(world.passed());
    if (calls.size() < 3) throw RateLimited(4s);
    return 1;
  };
  CHECK(Call({{world.tokens, "a", 100}})(fails) == 1);
  CHECK(calls == std::vector<Span>{0s, 4s, 8s});
  CHECK(world.tokens.peek("a").remaining == 900);
  calls.clear();
  CHECK_THROWS_AS(Call({{world.tokens, "a"}}, {.deadline = 3s})(fails), RateLimited);
  CHECK(calls.size() == 1);
}

TEST_CASE("a rate that is learned hears of refusals, and says when the next try is due",
          "[calls][claims]") {
  World world;
  testing::FaultyStore store(*world.store);
  const LearnedRate rate(store, "learned");
  const Gates gates(store, "gates", {"account"});
  const Scope account = gates.scope("account", 7);
  std::vector<Span> calls;
  std::vector<LearnedSpeed> speeds;
  const auto fails = [&]() -> int {
    calls.push_back(world.passed());
    speeds.push_back(rate.learned("a"));
    if (calls.size() < 3) throw RateLimited();
    if (calls.size() == 3) throw RateLimited(30s);
    return 42;
  };
  CHECK(Call({{rate, "a"}, {gates, account}}, {.attempts = 4})(fails) == 42);
  CHECK(calls == std::vector<Span>{0s, 200ms, 600ms, 30'600ms});
  CHECK(speeds[1].rate == 5'000'000);
  CHECK(speeds[2].rate == 2'500'000);
  CHECK(speeds[3].rate == 1'250'000);
  CHECK(speeds[3].peak == 10'000'000);

  // The gate is closed and the rate told in one request; nothing is refunded besides.
  const auto asked = store.counts().calls;
  const Call once({{rate, "a"}, {gates, account}}, {.attempts = 1});
  CHECK_THROWS_AS(once([&]() -> int { throw RateLimited(1s); }), RateLimited);
  CHECK(store.counts().calls <= asked + 4);
  CHECK(rate.learned("a").rate == 1'326'042);
  world.clock.advance(2s);
  CHECK_THROWS_AS(once([&]() -> int {
                    store.fail_all(testing::Fault::not_executed(Errc::not_connected));
                    throw RateLimited();
                  }),
                  std::system_error);
  store.heal();
  CHECK(rate.learned("a").rate == 1'326'042);
  // What may have been served, or not, says nothing of the rate.
  world.clock.advance(2s);
  CHECK_THROWS_AS(once([&]() -> int { throw Transient(Served::no); }), Transient);
  CHECK(rate.learned("a").rate == 1'326'042);
}

TEST_CASE("a retry waits at the place of the first try", "[calls][claims]") {
  World world;
  const FixedWindow window(*world.store, "w", 1, Calendar::every(1min));
  std::vector<int> order;
  std::shared_ptr<Probe<FixedWindow>> later;
  Call({{window, "a"}})([&] {
    order.push_back(0);
    if (later) return;
    later = wait_for(window, {"a", 1}, Deadline::never(),
                     [&](std::error_code, const Decision&) { order.push_back(1); });
    throw Transient(Served::perhaps, 1s);
  });
  world.clock.advance(1min);
  CHECK(order == std::vector{0, 0, 1});
}

TEST_CASE("a refused call names the limit, and options are checked", "[calls][claims]") {
  World world;
  (void)world.tokens.try_acquire("a", 900);
  const Call call(world.claims, {.deadline = 1s});
  try {
    call([] { FAIL("called"); });
    FAIL("not refused");
  } catch (const NotGranted& refused) {
    CHECK(std::string(refused.what()) == "\"tokens\" did not grant the call in time");
    CHECK(refused.decision().step == 2);
    CHECK(refused.decision().retry_after == 12min);
  }
  const TokenBucket none(*world.store, "none", Quota::never());
  CHECK_THROWS_WITH(Call({{none, "a"}}, {.deadline = Deadline::never()})([] {}),
                    "\"none\" has a limit of 0, and grants no call");
  world.gates.close(world.developer, 1h);
  CHECK_THROWS_WITH(call([] {}), "\"api\" did not open in time");
  CHECK_THROWS_WITH(Call({{world.requests, "a"}})([] {
                      return Costed<int>{1, 1};
                    }),
                    "Call: the function reports a cost, but no claim is an Estimate");
  CHECK_THROWS_WITH(Call({{world.requests, "a"}}, {.attempts = 0}),
                    "BackoffOptions::attempts must be 1 or more, got 0");
  CHECK_THROWS_AS(Call({{world.requests, "a"}}, {.base = 2min}), std::invalid_argument);
  CHECK_THROWS_WITH(Call(std::span<const Claim>{}), "0 claims, allowed 1 to 16");
  const auto lies = [] { throw RateLimited(1s, 2); };
  World other;
  CHECK_THROWS_WITH(Call(other.claims)(lies), "RateLimited: scope 2 of 2");
  CHECK_THROWS_WITH(Call({{other.requests, "b"}})([] { throw RateLimited(1s, 1); }),
                    "RateLimited: scope 1 of 0");
}

}  // namespace sluice::test
