// The circuit breaker of a service of several parts: each has a state of its own, and a part that
// is reachable again is called at once. In virtual time.
#include <limits>
#include <tuple>

#include "tests/fallback/nodes.hpp"

namespace sluice::test {
namespace {

using Result = CircuitBreaker::Result;

struct Parts {
  explicit Parts(CircuitBreaker::OnPartChange on_change = {})
      : breaker(clock, options, std::move(on_change)) {}

  void fail(unsigned part, std::uint64_t comebacks = 0) {
    breaker.answer(breaker.ask(part, comebacks), Result::failure);
  }
  void trip(unsigned part, std::uint64_t comebacks = 0) {
    for (int i = 0; i < 2; ++i) fail(part, comebacks);
    REQUIRE(breaker.state(part) == State::open);
  }

  [[nodiscard]] Span pause(int n) const { return pause_of(options, n); }

  VirtualClock clock;
  SameRng rng;
  BreakerOptions options{.failures = 2, .first_pause = 10s, .longest_pause = 24h, .rng = &rng};
  CircuitBreaker breaker;
};

}  // namespace

TEST_CASE("the parts of a service open and close apart", "[fallback][parts]") {
  Parts parts;
  CircuitBreaker& breaker = parts.breaker;
  parts.fail(0);
  parts.fail(2);
  parts.fail(7);
  for (const unsigned part : {0U, 1U, 2U, 3U, 7U, 8U}) CHECK(breaker.state(part) == State::closed);
  parts.fail(2);
  parts.clock.advance(1s);
  parts.fail(0);
  CHECK(breaker.state(2) == State::open);
  CHECK(breaker.state() == State::open);
  for (const unsigned part : {1U, 3U, 7U, 8U}) {
    CHECK(breaker.state(part) == State::closed);
    CHECK(breaker.ask(part));
    CHECK(breaker.wait(part) == 10s);
  }
  CHECK(breaker.ask(2).wait == parts.pause(0) - 1s);
  CHECK(breaker.wait(2) == parts.pause(0) - 1s);
  CHECK(breaker.ask().wait == parts.pause(0));
  CHECK(breaker.wait() == parts.pause(0));
  parts.clock.advance(parts.pause(0) - 1s);
  const auto probe = breaker.ask(2);
  CHECK(probe.is_probe);
  CHECK(probe.part == 2);
  CHECK_FALSE(breaker.ask());
  CHECK(breaker.state(2) == State::half_open);
  CHECK(breaker.state() == State::open);
  breaker.answer(probe, Result::success);
  CHECK(breaker.state(2) == State::closed);
  CHECK(breaker.state() == State::open);
  const auto stats = breaker.stats();
  CHECK(stats.trips == 2);
  CHECK(stats.probes == 1);
  CHECK(stats.denied == 3);
}

TEST_CASE("the pauses of one part do not lengthen those of another", "[fallback][parts]") {
  Parts parts;
  parts.trip(1);
  for (const Span pause : {parts.pause(0), parts.pause(1), parts.pause(2)}) {
    CHECK(parts.breaker.wait(1) == pause);
    parts.clock.advance(pause);
    parts.fail(1);
  }
  CHECK(parts.breaker.wait(1) == parts.pause(3));
  parts.trip(2);
  parts.trip(0);
  CHECK(parts.breaker.wait(2) == parts.pause(0));
  CHECK(parts.breaker.wait() == parts.pause(0));
}

TEST_CASE("a part that is reachable again lets one probe out at once", "[fallback][parts]") {
  const unsigned part = GENERATE(0U, 1U, 500U);
  CAPTURE(part);
  Parts parts;
  CircuitBreaker& breaker = parts.breaker;
  parts.trip(part, 3);
  CHECK(breaker.ask(part, 3).wait == parts.pause(0));
  CHECK(breaker.ask(part, 2).wait == parts.pause(0));
  const auto probe = breaker.ask(part, 4);
  CHECK(probe.is_probe);
  // It is the only one, also if the part comes back once more meanwhile.
  for (const std::uint64_t comebacks : {4U, 5U}) {
    const auto other = breaker.ask(part, comebacks);
    CHECK_FALSE(other);
    CHECK(other.wait == 10s);
  }
  breaker.answer(probe, Result::success);
  CHECK(breaker.state(part) == State::closed);
  CHECK(breaker.stats().probes == 1);
}

TEST_CASE("a probe that fails after a comeback is followed by a pause, the longer one",
          "[fallback][parts]") {
  Parts parts;
  CircuitBreaker& breaker = parts.breaker;
  parts.trip(1, 3);
  parts.fail(1, 4);
  for (const Span pause : {parts.pause(1), parts.pause(2)}) {
    CHECK(breaker.ask(1, 4).wait == pause);
    parts.clock.advance(pause - 1us);
    CHECK(breaker.ask(1, 4).wait == 1us);
    parts.clock.advance(1us);
    parts.fail(1, 4);
  }
  CHECK(breaker.stats().probes == 3);
  // One for each comeback, and no more.
  for (std::uint64_t comebacks = 5; comebacks < 15; ++comebacks) {
    parts.fail(1, comebacks);
    CHECK_FALSE(breaker.ask(1, comebacks));
  }
  CHECK(breaker.stats().probes == 13);
}

TEST_CASE("a probe without a result leaves the comeback to the next", "[fallback][parts]") {
  Parts parts;
  parts.trip(1);
  parts.breaker.answer(parts.breaker.ask(1, 1), Result::unclear);
  const auto next = parts.breaker.ask(1, 1);
  CHECK(next.is_probe);
  parts.breaker.answer(next, Result::success);
  CHECK(parts.breaker.state(1) == State::closed);
}

TEST_CASE("a comeback before the part opened counts, unless a call was made after it",
          "[fallback][parts]") {
  Parts parts;
  CircuitBreaker& breaker = parts.breaker;
  SECTION("all failed calls are from before it") {
    const auto first = breaker.ask(1, 3);
    const auto second = breaker.ask(1, 3);
    breaker.answer(first, Result::failure);
    // The part is reachable again here, before the second call fails.
    breaker.answer(second, Result::failure);
    CHECK(breaker.state(1) == State::open);
    CHECK(breaker.ask(1, 4).is_probe);
  }
  SECTION("one of the failed calls is from after it, although it is not the last to fail") {
    const auto first = breaker.ask(1, 4);
    const auto second = breaker.ask(1, 3);
    breaker.answer(first, Result::failure);
    breaker.answer(second, Result::failure);
    CHECK(breaker.ask(1, 4).wait == parts.pause(0));
    CHECK(breaker.ask(1, 5).is_probe);
  }
  SECTION("a call from after it fails when the part is open already") {
    const auto late = breaker.ask(1, 4);
    parts.trip(1, 3);
    breaker.answer(late, Result::failure);
    CHECK(breaker.ask(1, 4).wait == parts.pause(0));
  }
  SECTION("a call from after it succeeded, or had no result") {
    parts.fail(1, 3);
    breaker.answer(breaker.ask(1, 4), Result::success);
    breaker.answer(breaker.ask(1, 4), Result::unclear);
    parts.trip(1, 3);
    CHECK(breaker.ask(1, 4).is_probe);
  }
}

TEST_CASE("comebacks change nothing while a part is closed, nor for other parts",
          "[fallback][parts]") {
  Parts parts;
  CircuitBreaker& breaker = parts.breaker;
  parts.fail(1, 1);
  CHECK_FALSE(breaker.ask(1, 9).is_probe);
  parts.fail(1, 9);
  CHECK(breaker.state(1) == State::open);
  parts.trip(2, 0);
  CHECK_FALSE(breaker.ask(1, 9));
  CHECK(breaker.ask(2, 9).is_probe);
  CHECK(breaker.state(1) == State::open);
}

TEST_CASE("numbers from the last part on share a state", "[fallback][parts]") {
  constexpr unsigned last = CircuitBreaker::max_parts - 1;
  constexpr unsigned largest = std::numeric_limits<unsigned>::max();
  Parts parts;
  CircuitBreaker& breaker = parts.breaker;
  parts.fail(largest);
  CHECK(breaker.state(last) == State::closed);
  parts.fail(last);
  for (const unsigned part : {last, last + 1, last + 2, largest}) {
    CHECK(breaker.state(part) == State::open);
    CHECK(breaker.wait(part) == parts.pause(0));
    CHECK_FALSE(breaker.ask(part));
  }
  for (const unsigned part : {0U, 1U, last - 1}) CHECK(breaker.state(part) == State::closed);
  parts.clock.advance(parts.pause(0));
  const auto probe = breaker.ask(last + 1);
  CHECK(probe.is_probe);
  CHECK_FALSE(breaker.ask(last));
  breaker.answer(probe, Result::success);
  CHECK(breaker.state(largest) == State::closed);
  CHECK(breaker.stats().trips == 1);
}

TEST_CASE("a change is told with its part", "[fallback][parts]") {
  using Change = std::tuple<unsigned, State, State>;
  std::vector<Change> changes;
  Parts parts([&](unsigned part, State from, State to) { changes.emplace_back(part, from, to); });
  parts.trip(4);
  parts.trip(0);
  parts.breaker.answer(parts.breaker.ask(4, 1), Result::success);
  const std::vector<Change> expected{{4, State::closed, State::open},
                                     {0, State::closed, State::open},
                                     {4, State::open, State::half_open},
                                     {4, State::half_open, State::closed}};
  CHECK(changes == expected);
}

}  // namespace sluice::test
