// The first of several alternatives: which is granted, what is charged, who waits where.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

struct Answer {
  Span at{-1};  ///< since the start; negative: none yet
  bool granted = false;
  std::size_t alternative = 0;
  Decision decision{};
  std::error_code error{};
};

/// Callers that wait on one thread, while the test moves the clock.
struct Bench {
  VirtualClock clock;
  std::unique_ptr<Store> inner = make_virtual_store(clock);
  testing::FaultyStore store{*inner};
  TokenBucket keys{store, "keys", Quota::per_second(1).burst(2)};
  Time start = clock.now();
  std::map<int, Answer> answers;
  std::map<int, Grants> held;
  std::vector<std::shared_ptr<FirstOfProbe>> probes;

  std::shared_ptr<FirstOfProbe> wait(int name, const FirstOf& alternatives,
                                     const Deadline& deadline = Deadline::never()) {
    const auto probe =
        wait_for(alternatives, deadline, [=, this](std::error_code error, Grants grants) {
          answers[name] = {clock.now() - start, static_cast<bool>(grants), grants.alternative(),
                           grants.decision(), error};
          held[name] = std::move(grants);
        });
    probes.push_back(probe);  // until the end, as that of a caller
    return probe;
  }
  [[nodiscard]] FirstOf both(Word cost = 1) const {
    return first_of({{{keys, "a", cost}}, {{keys, "b", cost}}});
  }
  [[nodiscard]] Word left(const char* key) const { return keys.peek(key).remaining; }
  [[nodiscard]] std::uint64_t operations() const { return store.counts().calls; }
};

}  // namespace

TEST_CASE("the first alternative that grants is charged, and no other", "[first_of]") {
  Bench bench;
  bench.wait(1, bench.both(2));
  CHECK(bench.operations() == 1);
  CHECK(bench.answers[1].granted);
  CHECK(bench.answers[1].alternative == 0);
  CHECK(bench.left("a") == 0);
  CHECK(bench.left("b") == 2);
  bench.wait(2, bench.both());
  CHECK(bench.answers[2].alternative == 1);
  CHECK(bench.answers[2].decision.remaining == 1);
  CHECK(bench.left("b") == 1);
}

TEST_CASE("alternatives are drawn by weight, and those of weight 0 are the last, in their order",
          "[first_of]") {
  Bench bench;
  const FixedWindow wide(bench.store, "wide", 100'000, Calendar::every(24h));
  const auto alternatives = first_of({{{wide, "a"}}, {{wide, "b"}}, {{wide, "c"}}, {{wide, "d"}}})
                                .by_weight({3, 1, 0, 0});
  std::array<int, 4> chosen{};
  for (int i = 0; i < 4'000; ++i) ++chosen[acquire(alternatives, 0s).alternative()];
  CHECK(chosen[2] + chosen[3] == 0);
  CHECK(chosen[0] > 2'850);  // 3,000, and a deviation of 27
  CHECK(chosen[0] < 3'150);
  (void)wide.penalize("a", 100'000);
  (void)wide.penalize("b", 100'000);
  CHECK(acquire(alternatives, 0s).alternative() == 2);
  (void)wide.penalize("c", 100'000);
  CHECK(acquire(alternatives, 0s).alternative() == 3);
}

TEST_CASE("a refusal is that of the alternative that would be granted first", "[first_of]") {
  Bench bench;
  (void)bench.keys.try_acquire("a", 2);
  (void)bench.keys.try_acquire("b", 2);
  const Grants refused =
      acquire(first_of({{{bench.keys, "a", 2}}, {{bench.keys, "b"}}, {{bench.keys, "a"}}}), 500ms);
  CHECK_FALSE(refused);
  CHECK(refused.alternative() == 1);
  CHECK(refused.decision().retry_after == 1s);
  CHECK(bench.keys.waiting("a") == 0);
  const FixedWindow hours(bench.store, "hours", 1, Calendar::every(1h));
  REQUIRE(hours.try_acquire("x"));
  const Call call(first_of({{{hours, "x"}}, {{bench.keys, "b"}}}), {.deadline = 500ms});
  CHECK_THROWS_WITH(call([] {}), "\"keys\" did not grant the call in time");
  bench.clock.advance(1s);
  CHECK(bench.left("b") == 1);
  CHECK(acquire(bench.both(), 0s).alternative() == 0);
}

TEST_CASE("an alternative that fails is left out, and the call fails if none is left",
          "[first_of]") {
  Bench bench;
  bench.wait(1, first_of({{{bench.keys, "a", 3}}, {{bench.keys, "b", 2}}}));
  CHECK(bench.answers[1].alternative == 1);
  bench.wait(2, first_of({{{bench.keys, "a", 3}}, {{bench.keys, "b", -1}}}));
  CHECK(bench.answers[2].error == Errc::cost_exceeds_capacity);
  try {
    (void)acquire(first_of({{{bench.keys, "a", 3}}, {{bench.keys, "b", 4}}}), 1s);
    FAIL("it was granted");
  } catch (const std::system_error& error) {
    CHECK(error.code() == Errc::cost_exceeds_capacity);
    CHECK(std::string(error.what()).find("cost 3") != std::string::npos);
  }
}

TEST_CASE("alternatives that cannot be are refused where they are made", "[first_of]") {
  Bench bench;
  const auto other = make_virtual_store(bench.clock);
  const TokenBucket elsewhere(*other, "keys", Quota::per_second(1));
  CHECK_THROWS_WITH(first_of({}), "first_of: 0 alternatives, allowed 1 to 16");
  CHECK_THROWS_WITH(first_of({{{bench.keys, "a"}}, {}}), "0 claims, allowed 1 to 16");
  CHECK_THROWS_AS(first_of({{{bench.keys, "a"}}, {{elsewhere, "a"}}}), std::invalid_argument);
  CHECK_THROWS_AS(first_of(std::vector(17, std::vector{Claim(bench.keys, "a")})),
                  std::invalid_argument);
  CHECK_THROWS_WITH(bench.both().by_weight({1}),
                    "FirstOf::by_weight: 1 weights for 2 alternatives");
  CHECK_THROWS_WITH(bench.both().by_weight({1, -1}),
                    "FirstOf::by_weight: a weight must be 0 to 1000, got -1");
  CHECK_THROWS_WITH(bench.both().by_weight({0, 0}), "FirstOf::by_weight: all weights are 0");
}

TEST_CASE("a refusal of the API closes one alternative, and the call goes to the other",
          "[first_of][calls]") {
  Bench bench;
  VirtualClock::AutoAdvance moving(bench.clock);
  const Gates gates(bench.store, "api", {"account"}, {.ramp = 0s, .spacing = 0s});
  const std::array accounts{gates.scope("account", "a"), gates.scope("account", "b")};
  const FixedWindow tokens(bench.store, "tokens", 1'000, Calendar::every(24h));
  const Call call(first_of({
      {{bench.keys, "a"}, {tokens, "a", Estimate{300}}, {gates, accounts[0]}},
      {{bench.keys, "b"}, {tokens, "b", Estimate{300}}, {gates, accounts[1]}},
  }));
  std::vector<std::size_t> called;
  const int result = call([&](Grants& granted) {
    called.push_back(granted.alternative());
    if (called.size() == 1) throw RateLimited(10s);
    return Costed<int>{42, 120};
  });
  CHECK(result == 42);
  CHECK(called == std::vector<std::size_t>{0, 1});
  CHECK(bench.clock.now() == bench.start);
  CHECK_FALSE(gates.peek(accounts[0]).allowed);
  CHECK(gates.peek(accounts[1]).allowed);
  CHECK(bench.left("a") == 2);
  CHECK(tokens.peek("a").remaining == 1'000);
  CHECK(tokens.peek("b").remaining == 880);
  CHECK(bench.left("b") == 1);
}

TEST_CASE("a refusal of the API closes the gate of the alternative that was called",
          "[first_of][calls]") {
  Bench bench;
  VirtualClock::AutoAdvance moving(bench.clock);
  const Gates gates(bench.store, "api", {"account"}, {.ramp = 0s, .spacing = 0s});
  const std::array accounts{gates.scope("account", "a"), gates.scope("account", "b")};
  const Call call(first_of({
      {{bench.keys, "a", 2}, {gates, accounts[0]}},
      {{gates, accounts[1]}, {bench.keys, "b", Estimate{2}}},
  }));
  (void)bench.keys.try_acquire("a");
  std::vector<std::size_t> called;
  (void)call([&](Grants& granted) {
    called.push_back(granted.alternative());
    if (called.size() == 1) throw RateLimited(500ms);
    return Costed<int>{0, 1};
  });
  CHECK(called == std::vector<std::size_t>{1, 1});
  CHECK(bench.clock.now() == bench.start + 500ms);
  CHECK(bench.left("b") == 1);  // settled
}

TEST_CASE("a call that may be granted elsewhere keeps nobody behind it from waiting",
          "[first_of]") {
  Bench bench;
  (void)bench.keys.try_acquire("a", 2);
  (void)bench.keys.try_acquire("b", 2);
  bench.clock.advance(500ms);
  bench.wait(1, first_of({{{bench.keys, "a", 2}}, {{bench.keys, "b"}}}));  // at 1.5 s, at 500 ms
  bench.wait(2, first_of({{{bench.keys, "a"}}}), 1s);
  CHECK(bench.answers.empty());
  bench.clock.advance(500ms);
  CHECK(bench.answers[1].alternative == 1);
  CHECK(bench.answers[2].granted);
}

TEST_CASE("of two alternatives whose units come at one instant one is asked at a time",
          "[first_of]") {
  Bench bench;
  (void)bench.keys.try_acquire("a", 2);
  (void)bench.keys.try_acquire("b", 2);
  bench.wait(1, bench.both());
  bench.store.fail_all(testing::Fault::none().late(20ms));
  const auto before = bench.operations();
  bench.clock.advance(1s);
  bench.clock.advance(100ms);
  CHECK(bench.operations() == before + 2);  // it asks one, and leaves the line of the other
  bench.store.heal();
  CHECK(bench.answers[1].granted);
  CHECK(bench.left("a") + bench.left("b") == 1);
}

}  // namespace sluice::test
