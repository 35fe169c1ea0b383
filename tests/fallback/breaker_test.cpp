// The circuit breaker alone: its defaults, and what it does without a clock or random numbers. The
// model has the rest (model_test.cpp).
#include <memory>
#include <string>

#include "tests/fallback/rig.hpp"

namespace sluice::test {
namespace {

using Result = CircuitBreaker::Result;

}  // namespace

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

TEST_CASE(
    "by default the fifth failure opens it, and no pause is longer than a quarter of a second",
    "[fallback]") {
  VirtualClock clock;
  SeededRng rng{5};
  CircuitBreaker breaker(clock, {.rng = &rng});
  for (int i = 0; i < 5; ++i) {
    CHECK(breaker.wait() == 100ms);
    breaker.answer(breaker.ask(), Result::failure);
  }
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

TEST_CASE("without a random number, the pause is the longest", "[fallback]") {
  struct Failing final : Rng {
    std::uint64_t next() override {
      throw std::system_error(std::make_error_code(std::errc::io_error));
    }
  } rng;
  VirtualClock clock;
  CircuitBreaker breaker(clock, {.failures = 1, .rng = &rng});
  breaker.answer(breaker.ask(), Result::failure);
  CHECK(breaker.wait() == 250ms);
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
