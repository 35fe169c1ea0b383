// The kernel of the sliding window counter as tables of moments: at this instant, this request,
// this answer. Threading: single-threaded.
#include "sluice/rules/sliding_window_counter.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = SlidingWindowCounterRule;

constexpr Span minute = 60s;

Ask acquire(Word cost, Word limit = 10, Span span = minute) {
  return {&sliding_window_counter_acquire, {limit, span.count(), cost}};
}
Ask peek(Word cost, Word limit = 10, Span span = minute) {
  return {&sliding_window_counter_peek, {limit, span.count(), cost}};
}
Ask adjust(Rule::Change change, Word amount, Span taken = 0s, Word limit = 10, Span span = minute) {
  return {&sliding_window_counter_adjust,
          {limit, span.count(), amount, static_cast<Word>(change), start + taken.count()}};
}
Ask block(Span length, Word limit = 10, Span span = minute) {
  return {&sliding_window_counter_block, {limit, span.count(), length.count()}};
}

}  // namespace

TEST_CASE("the window before weighs what a sliding window would still cover of it",
          "[core][sliding_window_counter]") {
  check_moments({{59s, acquire(10), admitted(0, 61s)},
                 {60s, acquire(1), turned_away(6s, 60s)},
                 {66s - 1us, acquire(1), turned_away(1us, 54s + 1us)},
                 {66s, peek(1), admitted(1, 54s)},
                 {66s, acquire(1), admitted(0, 114s)},
                 {66s, acquire(1), turned_away(6s, 114s)},
                 {72s - 1us, acquire(1), turned_away(1us, 108s + 1us)},
                 {72s, acquire(1), admitted(0, 108s)},
                 {120s, acquire(10), turned_away(60s, 60s, 8)},
                 {180s - 1us, acquire(10), turned_away(1us, 1us, 9)},
                 {180s, acquire(10), admitted(0, 120s)}});
}

TEST_CASE("beyond a minute back the counter restarts with one request",
          "[core][sliding_window_counter]") {
  check_moments({{100s, acquire(10), admitted(0, 80s)},
                 {0s, acquire(1), turned_away(126s, 180s)},
                 {-1us, peek(1), admitted(1, 60s + 1us)},
                 {-1us, acquire(1), admitted(0, 60s + 1us)},
                 {-1us, acquire(1), turned_away(6s + 1us, 60s + 1us)},
                 {6s - 1us, acquire(1), turned_away(1us, 54s + 1us)},
                 {6s, acquire(1), admitted(0, 114s)}});
}

TEST_CASE("a counter's arguments out of range are errors, and counts that none leaves are corrupt",
          "[core][sliding_window_counter][C-006][C-078]") {
  using enum Rule::Change;
  const Span longest{Rule::max_block};
  check_errors(Errc::invalid_argument,
               {acquire(1, 0), acquire(1, Rule::max_limit + 1), acquire(1, 10, 0us),
                acquire(1, 10, Span{Rule::max_span + 1}), adjust(static_cast<Rule::Change>(4), 1),
                block(-1us), block(longest + 1us), block(1s, 0), block(1s, 10, 0us)});
  for (const Word limit : {Word{0}, Rule::max_limit + 1}) {
    CHECK(sliding_window_counter_reset.check({limit}) == -Word(Errc::invalid_argument));
  }
  check_errors(Errc::invalid_cost,
               {acquire(-1), adjust(reward, word_limit + 1), adjust(reward, -1)});
  check_moments({{0s, peek(11), Verdict::failed(Errc::cost_exceeds_capacity)},
                 {0s, acquire(10), admitted(0, 120s)},
                 {0s, adjust(reward, word_limit), admitted(10, 0s), {10}}});
  Kernel used;
  used.ask(0s, acquire(1));
  check_corrupt(used, 0s,
                {{0, -1},
                 {0, word_limit + 1},
                 {1, Rule::max_limit + 1},
                 {2, Rule::max_limit + 1},
                 {3, word_limit + 1}},
                {acquire(1), peek(0)});
}

TEST_CASE("the longest block of a counter closes and is kept to the microsecond",
          "[core][sliding_window_counter]") {
  const Span longest{Rule::max_block};
  check_moments({{0s, block(0s), admitted(10, 0s)},
                 {0s, block(longest), admitted(0, longest)},
                 {longest - 1us, acquire(1), turned_away(1us, 1us)},
                 {longest, acquire(10), admitted(0, 120s)}});
  CHECK(Span{sliding_window_counter_block.ttl({10, minute.count(), longest.count()})} >=
        longest + 2 * minute);
}
