// The kernel of the fixed window as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/fixed_window.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

constexpr Word minute = 60'000'000;

Ask acquire(Word cost, Word limit = 3, Word width = minute, Word origin = 0) {
  return {&fixed_window_acquire, {limit, width, origin, 0, 0, 0, 0, cost}};
}
Ask peek(Word cost) { return {&fixed_window_peek, {3, minute, 0, 0, 0, 0, 0, cost}}; }
Ask refund(Word cost, Span begin, Span end, Word limit = 3) {
  return {&fixed_window_refund, {limit, start + begin.count(), start + end.count(), cost}};
}
/// Windows of 10 s, 20 s, 0 s and 70 s.
Ask take_by_calendar(Word cost, const Operation& row = fixed_window_acquire) {
  return {&row,
          {3, 0, start, start + 10'000'000, start + 30'000'000, start + 30'000'000,
           start + 100'000'000, cost}};
}
Ask adjust(Word amount, Word limit = 3, Word width = minute) {
  return {&fixed_window_adjust, {limit, width, 0, 0, 0, 0, 0, amount}};
}

Ask block(Span span, Word limit = 3, Word width = minute) {
  return {&fixed_window_block, {limit, width, 0, 0, 0, 0, 0, span.count()}};
}

Verdict allowed(Word remaining, Span until_reset) { return admitted(remaining, until_reset); }
Verdict refused(Word remaining, Span retry_after) {
  return turned_away(retry_after, retry_after, remaining);
}

}  // namespace

TEST_CASE("a window holds its limit, and the next begins with all of it", "[core][fixed_window]") {
  check_moments({{10s, acquire(2), allowed(1, 50s)},
                 {10s, acquire(2), refused(1, 50s)},
                 {20s, acquire(1), allowed(0, 40s)},
                 {60s - 1us, acquire(1), refused(0, 1us)},
                 {60s - 1us, peek(1), refused(0, 1us)},
                 {60s, peek(3), allowed(3, 0s)},
                 {60s, acquire(3), allowed(0, 60s)},
                 {200s, acquire(0), allowed(3, 0s)}});
  const Verdict outside = Verdict::failed(Errc::outside_calendar);
  check_moments({{-1us, take_by_calendar(1), outside},
                 {0s, take_by_calendar(3), allowed(0, 10s)},
                 {10s - 1us, take_by_calendar(1), refused(0, 1us)},
                 {10s, take_by_calendar(3), allowed(0, 20s)},
                 {30s, take_by_calendar(3), allowed(0, 70s)},
                 {100s - 1us, take_by_calendar(1, fixed_window_peek), refused(0, 1us)},
                 {100s, take_by_calendar(1), outside},
                 {100s, take_by_calendar(1, fixed_window_peek), outside}});
}

TEST_CASE("windows of a width are counted from their origin", "[core][fixed_window]") {
  const Word origin = 17;
  const auto ask = [&](Word cost) { return acquire(cost, 1, 1000, origin); };
  Kernel kernel(0);
  CHECK(kernel.ask(16us, ask(1)) == allowed(0, 1us));  // before the origin is one window
  CHECK(kernel.ask(16us, ask(1)) == refused(0, 1us));
  CHECK(kernel.ask(17us, ask(1)) == allowed(0, 1000us));
  CHECK(kernel.ask(1016us, ask(1)) == refused(0, 1us));
  CHECK(kernel.ask(1017us, ask(1)) == allowed(0, 1000us));
  CHECK(kernel.state == Output{1017, 2 * 1});
  Kernel narrow;
  for (const Span at : {0us, 1us, 2us}) {
    CHECK(narrow.ask(at, acquire(1, 1, 1)) == allowed(0, 1us));
    CHECK(narrow.ask(at, acquire(1, 1, 1)) == refused(0, 1us));
  }
}

TEST_CASE("a reward gives back what is used, a penalty charges beyond the limit",
          "[core][fixed_window]") {
  Kernel kernel;
  CHECK(kernel.ask(10s, adjust(-1)) == allowed(3, 0s));
  CHECK(kernel.state == Output{0, 0});  // nothing to write
  check_moments(kernel, {{10s, acquire(2), allowed(1, 50s)},
                         {10s, adjust(-5), allowed(3, 0s)},
                         {10s, adjust(2), allowed(1, 50s)},
                         {10s, adjust(4), allowed(0, 50s)},  // 6 of 3
                         {10s, acquire(0), refused(0, 50s)},
                         {10s, adjust(-4), allowed(1, 50s)},
                         {10s, adjust(word_limit), allowed(0, 50s)}});
  CHECK(kernel.state[1] == 2 * FixedWindowRule::max_used);
  check_moments(kernel, {{11s, adjust(-FixedWindowRule::max_used), allowed(3, 0s)},
                         {11s, adjust(word_limit), allowed(0, 49s)},
                         {60s, acquire(3), allowed(0, 60s)}});
}

TEST_CASE("a block ends in a calendar's window, which need not be known yet",
          "[core][fixed_window]") {
  const auto block_to = [](Span span) {
    Ask ask = take_by_calendar(0, fixed_window_block);
    ask.args[7] = span.count();
    return ask;
  };
  check_moments({{-1us, block_to(1s), Verdict::failed(Errc::outside_calendar)},
                 {5s, take_by_calendar(3), allowed(0, 5s)},
                 {5s, block_to(10s), allowed(0, 10s)},
                 {15s, take_by_calendar(3), allowed(0, 15s)},
                 {15s, block_to(50h), allowed(0, 50h)},
                 {99s, take_by_calendar(1), refused(0, 50h - 84s)},
                 {100s, take_by_calendar(1), Verdict::failed(Errc::outside_calendar)},
                 {50h + 15s - 1us, acquire(1), refused(0, 1us)},
                 {50h + 15s, acquire(3), allowed(0, 45s)}});
}

TEST_CASE("a window that another version of the zone began counts in one's own",
          "[core][fixed_window]") {
  // Its windows begin at 0 s and 20 s, one's own at 10 s and 30 s.
  const auto other = [](Word cost, const Operation& row = fixed_window_acquire) {
    return Ask{&row,
               {3, 0, start, start + 20'000'000, start + 50'000'000, start + 60'000'000,
                start + 100'000'000, cost}};
  };
  check_moments({{5s, other(2), allowed(1, 15s)},
                 {12s, take_by_calendar(3), allowed(0, 18s)},  // a window begins at 10 s
                 {15s, other(1), refused(0, 5s)},              // which counts in the other's
                 {20s, other(2), allowed(1, 30s)},
                 {25s, take_by_calendar(2), refused(1, 5s)},
                 {25s, take_by_calendar(1), allowed(0, 5s)},
                 {29s, other(1), refused(0, 21s)},  // from 20 s to 30 s at most 3
                 {30s, take_by_calendar(3), allowed(0, 70s)},
                 {31s, other(1), refused(0, 19s)}});
  check_moments({{20s, other(3), allowed(0, 30s)},
                 {25s, refund(1, 10s, 30s), allowed(1, 5s)},
                 {26s, take_by_calendar(1, fixed_window_adjust), allowed(0, 4s)},
                 {27s, take_by_calendar(10'000'000, fixed_window_block), allowed(0, 10s)},
                 {31s, other(1), refused(0, 6s)},
                 {37s, other(3), allowed(0, 13s)}});
}

TEST_CASE("a fixed window's arguments out of range are errors", "[core][fixed_window][C-006]") {
  using Rule = FixedWindowRule;
  const Span longest{Rule::max_block};
  const auto calendar = [](Word a, Word b, Word c, Word d, Word e) {
    return Ask{&fixed_window_acquire, {3, 0, a, b, c, d, e, 1}};
  };
  check_errors(Errc::invalid_cost,
               {acquire(-1), peek(-1), refund(-1, 0s, 60s), refund(word_limit + 1, 0s, 60s),
                adjust(word_limit + 1), adjust(-word_limit - 1)});
  check_errors(Errc::cost_exceeds_capacity, {acquire(4), peek(4)});
  check_errors(
      Errc::invalid_argument,
      {adjust(1, 3, -1), adjust(1, -1), block(-1us), block(longest + 1us), block(1s, 0),
       block(1s, Rule::max_limit + 1), block(1s, 3, -1), acquire(1, Rule::max_limit + 1),
       acquire(1, 3, -1), acquire(1, 3, Rule::max_width + 1), acquire(1, 3, minute, minute),
       acquire(1, 3, minute, -1), calendar(-1, 1, 2, 3, 4), calendar(2, 1, 2, 3, 4),
       calendar(0, 1, 3, 2, 4), calendar(0, 1, 2, 3, word_limit + 1), refund(1, 60s, 0s),
       Ask{&fixed_window_reset, {-1}}});
}

TEST_CASE("the longest block closes and is kept to the microsecond", "[core][fixed_window]") {
  const Span longest{FixedWindowRule::max_block};
  check_moments({{0s, block(0s), allowed(3, 0s)},
                 {0s, block(longest), allowed(0, longest)},
                 {longest - 1us, acquire(3), refused(0, 1us)},
                 {longest, acquire(3), allowed(0, 60s)}});
  // A key is kept for as long as it closes and what it says is used counts.
  const auto keep = [](Span span) {
    return Span{fixed_window_block.ttl({3, minute, 0, 0, 0, 0, 0, span.count()})};
  };
  CHECK(keep(longest) >= longest + 60s + 60s);
  CHECK(keep(0s).count() == fixed_window_acquire.ttl({3, minute, 0, 0, 0, 0, 0, 1}));
  CHECK(fixed_window_block.ttl({3, 0, 0, word_limit, word_limit, word_limit, word_limit,
                                longest.count()}) == word_limit);
}

TEST_CASE("at the ends of time a fixed window stays within its words", "[core][fixed_window]") {
  Kernel kernel(word_limit - 1);
  const Ask widest =
      acquire(FixedWindowRule::max_limit, FixedWindowRule::max_limit, FixedWindowRule::max_width);
  CHECK(kernel.ask(0us, widest) == allowed(0, 1us));
  CHECK(kernel.ask(0us, widest) == refused(0, 1us));
  check_corrupt(Kernel(), 0us, {{0, word_limit + 1}, {1, word_limit}}, {acquire(1)});
  Kernel any;
  any.state = {word_limit, 2 * FixedWindowRule::max_used};  // a clock set back
  CHECK(any.ask(0us, acquire(1)) == allowed(0, 60s));
}
