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
