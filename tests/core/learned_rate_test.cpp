// The kernel of the learned rate as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/learned_rate.hpp"

#include "tests/core/long_kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = LearnedRateRule;

constexpr Word start = 946'684'800'000'000;
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
Ask adjust(Rule::Change change, Word amount, const Rule::Pace& pace = pace_of(ten)) {
  return ask(learned_rate_adjust, pace, amount, static_cast<Word>(change));
}
Ask told(Word ceiling, Word remaining = word_limit, Span reset = 0s) {
  return ask(learned_rate_told, pace_of(ten), ceiling, remaining, reset.count());
}
Ask block(Span length) { return ask(learned_rate_block, pace_of(ten), length.count()); }

/// The rate and its peak.
Output learned(LongKernel& kernel, Span at) {
  CHECK(kernel.ask(at, peek(0)).status >= Verdict::refused);
  return kernel.output;
}
/// Ten a second, with all that was saved spent at 0, and grants at 100 ms; then a fall at 150 ms.
LongKernel fallen() {
  LongKernel kernel(start);
  check_moments(kernel, {{0s, acquire(1), admitted(1, 100ms)},
                         {0s, acquire(1), admitted(0, 200ms)},
                         {100ms, acquire(1), admitted(0, 193'550us)},
                         {150ms, limited(100ms), admitted(0, 203'736us), {1}}});
  return kernel;
}

}  // namespace

TEST_CASE("a rate that is used grows, by a factor e in three seconds before it fell",
          "[core][learned_rate]") {
  LongKernel kernel(start);
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

TEST_CASE("a rate grows only where a grant leaves less than the same again",
          "[core][learned_rate]") {
  for (const Span gap : {Span{100ms}, Span{100ms} - 1us}) {
    LongKernel kernel(start);
    for (int i = 0; i < 20; ++i) CHECK(kernel.ask(i * gap, acquire(1)).status == 1);
    CHECK((learned(kernel, 19 * gap)[0] == ten) == (gap == 100ms));
  }
}

TEST_CASE(
    "what comes back in an hour is not explored: a grant grows by a tenth of a second at most",
    "[core][learned_rate]") {
  LongKernel kernel = fallen();
  check_moments(kernel, {{20min, acquire(2), {Verdict::allowed, 2, 0, 0}},
                         {30min, acquire(2), {Verdict::allowed, 2, 0, 0}},
                         {30min, acquire(2), admitted(0, 203'522us)},
                         {30min, peek(0), admitted(0, 203'522us), {9'827'000, 10'333'333}}});
}

TEST_CASE("a rate falls by a twentieth, once for each episode", "[core][learned_rate]") {
  LongKernel kernel = fallen();
  const Output fell{9'816'667, 10'333'333};
  CHECK(learned(kernel, 150ms) == fell);
  check_moments(kernel, {{160ms, limited(0s), admitted(0, 193'736us), {0}},
                         {160ms, limited(150ms), admitted(0, 193'736us), {0}},
                         {160ms, limited(160ms + 1us), admitted(0, 193'736us), {0}}});
  CHECK(learned(kernel, 160ms) == fell);
  check_moments(kernel, {{160ms, limited(150ms + 1us), admitted(0, 407'472us), {1}}});
}

TEST_CASE("a rate returns to its peak quickly and passes it slowly", "[core][learned_rate]") {
  LongKernel kernel = fallen();
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

TEST_CASE("while the first call behind a fall is refused the rate halves", "[core][learned_rate]") {
  LongKernel kernel(start);
  Span at = 0s;
  for (const Word rate : {5'000'000, 2'500'000, 1'250'000, 625'000, 312'500, 156'250, 100'000}) {
    CHECK(kernel.ask(at, acquire(1)).status == Verdict::allowed);
    CHECK(kernel.ask(at + 1ms, limited(at)).status == Verdict::allowed);
    CHECK(learned(kernel, at + 1ms) == Output{rate, ten});
    at += 1ms + Span{Rule::need(1, rate)};
  }
}

TEST_CASE("the peak is at most what was accepted in the last minute, and the rate then 1/16 of it",
          "[core][learned_rate]") {
  LongKernel kernel(start);
  CHECK(kernel.ask(0s, acquire(600)).status == Verdict::allowed);
  CHECK(kernel.ask(59s, limited(0s, 300)).status == Verdict::allowed);
  Span at = 59s;
  for (const Word rate : {5'000'000, 2'500'000, 1'250'000, 625'000, 312'500, 312'500}) {
    CHECK(learned(kernel, at) == Output{rate, 5 * one});
    const Span next = at + Span{Rule::need(1, rate)};
    if (next >= 60s) break;
    CHECK(kernel.ask(next, acquire(1)).status == Verdict::allowed);
    at = next + 1ms;
    CHECK(kernel.ask(at, limited(next)).status == Verdict::allowed);
  }
}

TEST_CASE("what was accepted is counted over the last minute, whenever that began",
          "[core][learned_rate]") {
  LongKernel kernel(start);
  check_moments(kernel, {{0s, acquire(600), {Verdict::allowed, 2, 0, 0}},
                         {90s, acquire(1), admitted(1, 100ms)},
                         {90s, acquire(1), admitted(0, 193'550us)}});
  // Of the 599 of the minute before, 29 of 60 seconds count.
  CHECK(kernel.ask(90s, limited(0s)).status == Verdict::allowed);
  CHECK(learned(kernel, 90s)[1] == (289 + 2) * one / 60);
}

TEST_CASE("what an API tells is a ceiling, and what remains is granted and no more",
          "[core][learned_rate]") {
  LongKernel kernel(start);
  check_moments(kernel, {{0s, told(20 * one), admitted(2, 0s)},
                         {0s, peek(0), admitted(2, 0s), {ten, 20 * one}},
                         {0s, told(5 * one), admitted(2, 0s)},
                         {0s, peek(0), admitted(2, 0s), {5 * one, 5 * one}},
                         {0s, told(0, 1, 10s), admitted(1, 0s)},
                         {0s, told(0, 7, 99s), admitted(1, 0s)},
                         {0s, acquire(2), turned_away(10s, 0s, 1)},
                         {0s, acquire(1), admitted(0, 200ms)},
                         {1s, acquire(1), turned_away(9s, 0s)},
                         {10s - 1us, acquire(1), turned_away(1us, 0s)},
                         {10s, acquire(1), admitted(1, 200ms)},
                         {10s, acquire(1), admitted(0, 400ms)},
                         {10'200ms, acquire(1), admitted(0, 400ms)},
                         {10'200ms, peek(0), admitted(0, 400ms), {5 * one, 5 * one}},
                         {10'200ms, told(0, 0, 0s), admitted(0, 400ms)},
                         {10'400ms, peek(1), admitted(1, 200ms)}});
}

TEST_CASE("a block refuses until it ends, and an earlier one changes nothing",
          "[core][learned_rate]") {
  check_moments(LongKernel(start), {{0s, block(10s), admitted(0, 10s)},
                                    {1s, block(1s), admitted(0, 9s)},
                                    {1s, acquire(0), turned_away(9s, 9s)},
                                    {10s - 1us, acquire(1), turned_away(1us, 1us)},
                                    {10s, acquire(1), admitted(1, 100ms)},
                                    {10s, block(0s), admitted(1, 100ms)}});
}

TEST_CASE("what was learned is forgotten when the key was not used for so long",
          "[core][learned_rate]") {
  LongKernel kernel = fallen();
  CHECK(learned(kernel, 150ms + 1h - 1us)[0] == 9'816'667);
  CHECK(learned(kernel, 150ms + 1h) == Output{ten, 0});
  // Not before the end of a block, or of what the API told; a hint does not lie behind it.
  CHECK(kernel.ask(1s, block(2h)).status == Verdict::allowed);
  CHECK(learned(kernel, 1s + 2h - 1us)[0] == 9'816'667);
  CHECK(learned(kernel, 1s + 2h)[0] == ten);
  LongKernel slow(start);
  const auto pace = pace_of(one / 10, one / 10);
  check_moments(slow, {{0s, acquire(500, pace), {Verdict::allowed, 2, 0, 0}},
                       {0s, acquire(500, pace), {Verdict::allowed, 0, 0, 20'000'000}},
                       {0s, acquire(500, pace), turned_away(1h, 20s)},
                       {1h - 1us, acquire(500, pace), turned_away(1us, 0s, 2)},
                       {1h, acquire(500, pace), {Verdict::allowed, 2, 0, 0}}});
}

TEST_CASE("a clock that was set back stands still for a minute, and restarts beyond",
          "[core][learned_rate]") {
  LongKernel kernel = fallen();
  check_moments(kernel, {{150ms - 60s, acquire(1), turned_away(60s + 101'868us, 60s + 203'736us)},
                         {150ms - 60s - 1us, peek(1), admitted(2, 0s), {9'816'667, 10'333'333}},
                         {150ms - 60s - 1us, acquire(1), admitted(1, 101'868us)},
                         {150ms - 60s, limited(0s), admitted(1, 101'867us), {0}}});
}

TEST_CASE("a grant is given back or charged at the present rate, up to a debt of a minute",
          "[core][learned_rate]") {
  check_moments(LongKernel(start),
                {{0s, acquire(2), {Verdict::allowed, 2, 0, 0}},
                 {0s, acquire(2), admitted(0, 200ms)},
                 {0s, adjust(Rule::Change::refund, 1), admitted(1, 100ms), {1}},
                 {0s, adjust(Rule::Change::charge, 2), admitted(0, 300ms), {2}},
                 {0s, acquire(0), turned_away(100ms, 300ms)},
                 {0s, adjust(Rule::Change::charge, 0), admitted(0, 300ms), {0}},
                 {0s, adjust(Rule::Change::charge, 10'000), admitted(0, 60'200ms), {10'000}},
                 {0s, acquire(1), turned_away(60'100ms, 60'200ms)}});
}

TEST_CASE("a cost that the least rate never brings is an error", "[core][learned_rate]") {
  const auto fast = pace_of(ten, ten);
  const auto failed = [](Errc code) { return Verdict::failed(code); };
  check_moments(LongKernel(start),
                {{0s, acquire(439'804), {Verdict::allowed, 2, 0, 0}},
                 {0s, acquire(439'805), failed(Errc::cost_exceeds_capacity)},
                 {0s, acquire(Rule::max_cost + 1, pace_of(ten, Rule::max_rate, Rule::max_rate)),
                  failed(Errc::invalid_argument)},
                 {0s, acquire(Rule::max_cost + 1, fast), failed(Errc::cost_exceeds_capacity)},
                 {0s, acquire(-1), failed(Errc::invalid_cost)},
                 {0s, limited(0s, -1), failed(Errc::invalid_cost)},
                 {0s, limited(0s, Rule::max_cost + 1), failed(Errc::invalid_cost)},
                 {0s, told(-1), failed(Errc::invalid_argument)},
                 {0s, told(one, -1), failed(Errc::invalid_argument)}});
}
