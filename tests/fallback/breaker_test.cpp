// The circuit breaker alone, moment by moment.
#include <memory>
#include <string>

#include "tests/fallback/rig.hpp"

namespace sluice::test {
namespace {

using Result = CircuitBreaker::Result;

/// A breaker after three failures, and the pauses that it must draw.
struct Tripped {
  explicit Tripped(CircuitBreaker::OnChange on_change = {})
      : breaker(clock, {.failures = 3, .first_pause = 100ms, .longest_pause = 1s, .rng = &rng},
                std::move(on_change)) {
    for (int i = 0; i < 3; ++i) breaker.answer(breaker.ask(), Result::failure);
  }
  Span pause() { return backoff.next(same); }
  /// One probe after the pause, with this result.
  void probe(Result result) {
    clock.advance(10s);
    const auto permit = breaker.ask();
    REQUIRE(permit.is_probe);
    breaker.answer(permit, result);
  }

  VirtualClock clock;
  SeededRng rng{7};
  SeededRng same{7};
  Backoff backoff{100ms, 1s, Jitter::full};
  CircuitBreaker breaker;
};

}  // namespace

TEST_CASE("an open breaker lets nothing out until its pause is over, and then one probe",
          "[fallback][C-036]") {
  Tripped tripped;
  CircuitBreaker& breaker = tripped.breaker;
  const Span pause = tripped.pause();
  REQUIRE(pause > 1us);
  CHECK(breaker.ask().wait == pause);
  tripped.clock.advance(pause - 1us);
  CHECK(breaker.ask().wait == 1us);
  tripped.clock.advance(1us);
  const auto probe = breaker.ask();
  CHECK(probe);
  CHECK(probe.is_probe);
  CHECK(breaker.state() == State::half_open);
  for (int i = 0; i < 10; ++i) CHECK(breaker.ask().wait == 100ms);
  breaker.answer(probe, Result::success);
  CHECK(breaker.state() == State::closed);
  CHECK(breaker.ask());
  CHECK(breaker.stats().probes == 1);
  CHECK(breaker.stats().denied == 12);
}

TEST_CASE("the time of a breaker whose clock has ended stands still", "[fallback]") {
  auto clock = std::make_unique<VirtualClock>();
  CircuitBreaker breaker(*clock, {.failures = 1});
  breaker.answer(breaker.ask(), Result::failure);
  const Span pause = breaker.wait();
  breaker.answer(breaker.ask(1), Result::success);
  clock.reset();
  CHECK(breaker.wait() == pause);
  CHECK_FALSE(breaker.ask());
  breaker.answer(breaker.ask(1), Result::failure);
  CHECK(breaker.wait(1) == 250ms);
  CHECK_FALSE(breaker.ask(1));
}

TEST_CASE("by default no pause is longer than a quarter of a second, however long the outage",
          "[fallback]") {
  VirtualClock clock;
  SeededRng rng{5};
  CircuitBreaker breaker(clock, {.rng = &rng});
  for (int i = 0; i < 5; ++i) breaker.answer(breaker.ask(), Result::failure);
  Span longest{0};
  for (int i = 0; i < 5'000; ++i) {
    const Span pause = breaker.ask().wait;
    longest = std::max(longest, pause);
    clock.advance(pause);
    const auto probe = breaker.ask();
    REQUIRE(probe.is_probe);
    breaker.answer(probe, Result::failure);
  }
  CHECK(longest <= 250ms);
  CHECK(longest > 240ms);
  CHECK(breaker.stats().probes == 5'000);
}

TEST_CASE("every change of a breaker is told, in order", "[fallback]") {
  std::vector<std::pair<State, State>> changes;
  Tripped tripped([&](State from, State to) { changes.emplace_back(from, to); });
  tripped.probe(Result::failure);
  tripped.probe(Result::success);
  const std::vector<std::pair<State, State>> expected{{State::closed, State::open},
                                                      {State::open, State::half_open},
                                                      {State::half_open, State::open},
                                                      {State::open, State::half_open},
                                                      {State::half_open, State::closed}};
  CHECK(changes == expected);
}

TEST_CASE("a breaker refuses what cannot be where it is built", "[fallback]") {
  VirtualClock clock;
  CHECK_THROWS_AS(CircuitBreaker(clock, {.failures = 0}), std::invalid_argument);
  CHECK_THROWS_AS(CircuitBreaker(clock, {.first_pause = 0us}), std::invalid_argument);
  CHECK_THROWS_WITH(CircuitBreaker(clock, {.first_pause = 2s, .longest_pause = 1s}),
                    "BreakerOptions: 1 us <= first_pause <= longest_pause <= 86400000000 us, got "
                    "2000000 us and 1000000 us");
  CHECK_THROWS_AS(CircuitBreaker(clock, {.first_pause = 2s, .longest_pause = 1s}),
                  std::invalid_argument);
  CHECK_THROWS_AS(CircuitBreaker(clock, {.longest_pause = 25h}), std::invalid_argument);
}

}  // namespace sluice::test
