// How soon a store is asked again once it answers, by default options, whatever the outage was.
// Threading: the test's thread.
#include <optional>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

constexpr Span within = 100ms;  // the default of a FallbackStore

struct Outage {
  const char* name;
  Fault fault;
  Span overlap;  // for so long a call that fell into the outage is out after it
};

const std::array outages{
    Outage{"refuses", dead, 0ms},
    Outage{"hangs", Fault::request_lost().late(within), within},
    Outage{"connects in vain", Fault::not_executed(Errc::timed_out).late(within), within},
};

/// A breaker and a store before it, as they are by default.
struct Defaults {
  Defaults(const FailurePolicy& policy, Rng& rng)
      : breaker(clock, {.rng = &rng}), store(primary, breaker, policy) {}

  VirtualClock clock;
  std::unique_ptr<Store> whole = make_virtual_store(clock);
  FaultyStore primary{*whole};
  CircuitBreaker breaker;
  FallbackStore store;
};

}  // namespace

TEST_CASE("a store that answers again decides within 350 ms, whatever the outage and the policy",
          "[fallback][C-036]") {
  Random random(
      "a store that answers again decides within 350 ms, whatever the outage and the policy");
  CAPTURE(random.repeat());
  constexpr Span step = 10ms;  // between two calls
  for (const Span length : {Span{1s}, Span{30s}, Span{10min}}) {
    const auto rounds = length == 10min ? scaled(2) : scaled(20, 2);
    for (std::size_t round = 0; round < rounds; ++round) {
      for (const Outage& outage : outages) {
        for (const int kind : {0, 1, 2}) {
          CAPTURE(length.count(), outage.name, kind);
          VirtualClock local_clock;
          const auto local = make_virtual_store(local_clock);
          SeededRng rng{random.next()};
          Defaults rig(kind == 0   ? FailurePolicy::open()
                       : kind == 1 ? FailurePolicy::closed()
                                   : FailurePolicy::local(*local, 2),
                       rng);
          const TokenBucket bucket(rig.store, "b", Quota::per_second(1'000'000));
          std::optional<Time> decided;
          const auto ask = [&] {
            rig.clock.advance(step);
            decide_then(rig.store, bucket.acquire_step("a"),
                        [&](const std::error_code&, const Decision& decision) {
                          if (!is_degraded(decision.source) && !decided) decided = rig.clock.now();
                        });
          };
          rig.primary.fail_all(outage.fault);
          for (const Time end = rig.clock.now() + length; rig.clock.now() < end;) ask();
          REQUIRE_FALSE(decided);
          REQUIRE(rig.breaker.stats().trips == 1);
          rig.primary.heal();
          const Time back = rig.clock.now();
          while (!decided && rig.clock.now() < back + 1min) ask();
          REQUIRE(decided);
          CHECK(*decided <= back + 250ms + outage.overlap + step);
          CHECK(rig.breaker.state() == State::closed);
        }
      }
    }
  }
}

TEST_CASE("who comes back at the hints of a closed door is let in within 350 ms, by few questions",
          "[fallback][C-036]") {
  for (const Outage& outage : outages) {
    CAPTURE(outage.name);
    SeededRng rng{11};
    Defaults rig(FailurePolicy::closed(), rng);
    const TokenBucket bucket(rig.store, "b", Quota::per_second(1'000'000));
    rig.primary.fail_all(outage.fault);
    std::uint64_t questions = 0;
    Decision answer;
    // Asks, and waits for the answer and then for its hint.
    const auto ask = [&] {
      bool told = false;
      decide_then(rig.store, bucket.acquire_step("a"),
                  [&](const std::error_code&, const Decision& decision) {
                    answer = decision;
                    told = true;
                  });
      while (!told) rig.clock.advance(1ms);
      ++questions;
      rig.clock.advance(answer.retry_after);
    };
    for (const Time end = rig.clock.now() + 5min; rig.clock.now() < end;) ask();
    CHECK(questions == rig.primary.counts().calls);  // no hint is too early
    rig.primary.heal();
    const Time back = rig.clock.now();
    while (is_degraded(answer.source)) ask();
    CHECK(rig.clock.now() <= back + 350ms);
  }
}

TEST_CASE("an outage costs one caller at a time its deadline, and all others nothing",
          "[fallback][C-036]") {
  SeededRng rng{13};
  Defaults rig(FailurePolicy::closed(), rng);
  const TokenBucket bucket(rig.store, "b", Quota::per_second(1'000'000));
  rig.primary.fail_all(Fault::request_lost().late(within));
  const Time start = rig.clock.now();
  std::size_t out = 0;
  std::size_t most = 0;
  for (int i = 0; i < 60'000; ++i) {
    rig.clock.advance(1ms);
    const bool tripped = rig.breaker.stats().trips > 0;
    ++out;
    decide_then(rig.store, bucket.acquire_step("a"),
                [&](const std::error_code&, const Decision&) { --out; });
    if (tripped && rig.clock.now() > start + 1s) most = std::max(most, out);
  }
  CHECK(most == 1);
  const auto probes = rig.breaker.stats().probes;
  CHECK(probes >= 60'000 / 350);
  CHECK(probes <= 60'000 / 200);  // a deadline and half of the longest pause, on average
}

}  // namespace sluice::test
