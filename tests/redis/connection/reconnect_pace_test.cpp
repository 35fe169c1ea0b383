// How long a client stays away from a server, in virtual time. Threading: single-threaded.
#include "backends/redis/connection/reconnect_pace.hpp"

#include <array>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;
using redis_detail::ReconnectPace;

namespace {

constexpr Time start = to_time(1'000'000'000);
constexpr Span never_longer = 160ms;

ReconnectPace pace_of(std::uint64_t seed) { return {10ms, never_longer, seed}; }

/// The longest and the shortest of many pauses, each behind what `before` does.
struct Drawn {
  Span longest{0};
  Span shortest{1h};

  explicit Drawn(const auto& before) {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      ReconnectPace pace = pace_of(seed);
      const Span pause = pace.pause(before(pace));
      longest = std::max(longest, pause);
      shortest = std::min(shortest, pause);
    }
  }
  /// Uniform below `cap`: 500 draws leave out neither end.
  [[nodiscard]] bool are_below(Span cap) const {
    return longest < cap && longest > cap * 9 / 10 && shortest < cap / 10;
  }
};

/// Attempts that fail at once.
void fail(ReconnectPace& pace, int times) {
  for (int i = 0; i < times; ++i) {
    pace.attempt(start);
    static_cast<void>(pace.pause(start));
  }
}

/// A connection that ends behind `held`.
Time lose(ReconnectPace& pace, Span held, bool decides) {
  pace.attempt(start);
  pace.connected(start);
  if (decides) pace.decided();
  pace.ended(start + held);
  return start + held;
}

}  // namespace

TEST_CASE("pauses are drawn below a cap that doubles with each failure", "[pace]") {
  const std::array<Span, 7> caps{10ms, 20ms, 40ms, 80ms, 160ms, 160ms, 160ms};
  for (std::size_t i = 0; i < caps.size(); ++i) {
    CAPTURE(i);
    CHECK(Drawn([&](ReconnectPace& pace) {
            fail(pace, static_cast<int>(i));
            pace.attempt(start);
            return start;
          }).are_below(caps[i]));
  }
  ReconnectPace pace(1us, 24h, 7);
  fail(pace, 1'000);
  pace.attempt(start);
  CHECK(pace.pause(start) <= Span{1us} * (1 << 20));
}

TEST_CASE("a connection that decided a call ends the growth, however short", "[pace]") {
  CHECK(Drawn([&](ReconnectPace& pace) {
          fail(pace, 10);
          return lose(pace, 0us, true);
        }).are_below(10ms));
  for (int connections = 0; connections < 3; ++connections) {
    CHECK(Drawn([&](ReconnectPace& pace) {
            for (int i = 0; i < connections; ++i)
              static_cast<void>(pace.pause(lose(pace, 0us, true)));
            return lose(pace, 1us, true);
          }).are_below(10ms));
  }
}

TEST_CASE("a connection that decided nothing ends the growth if it held for 100 ms", "[pace]") {
  const auto behind = [](Span held) {
    return Drawn([=](ReconnectPace& pace) {
      fail(pace, 10);
      return lose(pace, held, false);
    });
  };
  CHECK(behind(0us).are_below(never_longer));
  CHECK(behind(100ms - 1us).are_below(never_longer));
  CHECK(behind(100ms).are_below(10ms));
}

TEST_CASE("an attempt that took long is no connection that held", "[pace]") {
  CHECK(Drawn([&](ReconnectPace& pace) {
          fail(pace, 10);
          pace.attempt(start);
          return start;
        }).are_below(never_longer));
  ReconnectPace pace = pace_of(1);
  fail(pace, 10);
  pace.attempt(start);
  pace.ended(start + 1s);  // of nothing
  Span longest{0};
  for (int i = 0; i < 100; ++i) longest = std::max(longest, pace.pause(start + 1s));
  CHECK(longest > 100ms);
}

TEST_CASE("the pause counts from the beginning of an attempt that failed", "[pace]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const Span hung : {0ms, 1ms, 50ms, 159ms, 160ms, 500ms}) {
      ReconnectPace pace = pace_of(seed);
      ReconnectPace twin = pace_of(seed);
      fail(pace, 10);
      fail(twin, 10);
      pace.attempt(start);
      twin.attempt(start);
      CHECK(pace.pause(start + hung) == std::max(Span{0}, twin.pause(start) - hung));
    }
  }
}

TEST_CASE("the pause counts from the end of a connection, which others may have lost too",
          "[pace]") {
  for (const Span held : {Span{0}, Span{50ms}, Span{1h}}) {
    CHECK(Drawn([&](ReconnectPace& pace) { return lose(pace, held, true); }).are_below(10ms));
  }
}

TEST_CASE("a connection that is left because its server cannot decide ends no growth", "[pace]") {
  for (const bool decides : {false, true}) {
    for (const Span held : {Span{0}, Span{10s}}) {
      CAPTURE(decides, held.count());
      const Drawn drawn([&](ReconnectPace& pace) {
        fail(pace, 10);
        pace.attempt(start);
        pace.connected(start);
        if (decides) pace.decided();
        pace.ended(start + held, true);
        return start + held;
      });
      CHECK(drawn.are_below(never_longer));
    }
  }
}
