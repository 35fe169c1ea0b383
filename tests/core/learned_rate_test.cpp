// The kernel of the learned rate as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/learned_rate.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = LearnedRateRule;

constexpr Word one = 1'000'000;  // a unit a second

Rule::Pace pace_of(Word initial, Word least = one / 10, Word most = 1'000 * one) {
  return {100, initial, least, most, Span{1h}.count()};
}
constexpr auto ten = 10 * one;

template <class... Words>
Ask ask(const Operation& row, const Rule::Pace& pace, Words... words) {
  return {&row, {pace.limit, pace.initial, pace.least, pace.most, pace.forget, Word{words}...}};
}
Ask acquire(Word cost, const Rule::Pace& pace = pace_of(ten)) {
  return ask(learned_rate_acquire, pace, cost);
}
Ask peek(Word cost, const Rule::Pace& pace = pace_of(ten)) {
  return ask(learned_rate_peek, pace, cost);
}
Ask limited(Span granted, Word amount = 1, const Rule::Pace& pace = pace_of(ten)) {
  return ask(learned_rate_limited, pace, amount, start + granted.count());
}

/// The rate and its peak.
Output learned(Kernel& kernel, Span at) {
  CHECK(kernel.ask(at, peek(0)).status >= Verdict::refused);
  return kernel.output;
}
/// Ten a second, with all that was saved spent at 0, and grants at 100 ms; then a fall at 150 ms.
Kernel fallen() {
  Kernel kernel;
  check_moments(kernel, {{0s, acquire(1), admitted(1, 100ms)},
                         {0s, acquire(1), admitted(0, 200ms)},
                         {100ms, acquire(1), admitted(0, 193'550us)},
                         {150ms, limited(100ms), admitted(0, 203'736us), {1}}});
  return kernel;
}

}  // namespace

TEST_CASE("a rate that is used grows, by a factor e in three seconds before it fell",
          "[core][learned_rate]") {
  Kernel kernel;
  check_moments(kernel, {{0s, peek(1), admitted(2, 0s), {ten, 0}},
                         {0s, acquire(1), admitted(1, 100ms)},
                         {0s, acquire(1), admitted(0, 200ms)},
                         {0s, acquire(1), turned_away(100ms, 200ms)},
                         {100ms - 1us, acquire(1), turned_away(1us, 100ms + 1us)},
                         {100ms, peek(1), admitted(1, 100ms), {ten, 0}},
                         {100ms, acquire(1), admitted(0, 193'550us)},
                         {100ms, peek(1), turned_away(96'775us, 193'550us), {10'333'333, 0}}});
  Span at = 100ms;
  while (at < 3'100ms) {
    at += Span{kernel.ask(at, acquire(1)).retry_after};
    CHECK(kernel.ask(at, acquire(1)).status == Verdict::allowed);
  }
  CHECK(learned(kernel, at)[0] > 27 * one);
  CHECK(learned(kernel, at)[0] < 29 * one);
}

TEST_CASE("a rate returns to its peak quickly and passes it slowly", "[core][learned_rate]") {
  Kernel kernel = fallen();
  Span at = 150ms;
  const auto grow_until = [&](Word rate) {
    const Span begin = at;
    while (learned(kernel, at)[0] < rate) {
      const Verdict verdict = kernel.ask(at, acquire(1));
      at += Span{verdict.retry_after};
      REQUIRE(at < begin + 5min);
    }
    return at - begin;
  };
  const Word peak = 10'333'333;
  const Span back = grow_until(peak);
  CHECK(back > 5s);
  CHECK(back < 7s);
  const Span beyond = grow_until(peak + peak / 10);
  CHECK(beyond > 9s);
  CHECK(beyond < 11s);
  const Span twice = grow_until(2 * peak);
  CHECK(twice > 38s);
  CHECK(twice < 48s);
}
