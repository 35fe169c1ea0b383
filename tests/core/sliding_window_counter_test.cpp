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

TEST_CASE("counts that no counter leaves are corrupt, and a reset is checked like a request",
          "[core][sliding_window_counter]") {
  for (const Word limit : {Word{0}, Rule::max_limit + 1}) {
    CHECK(sliding_window_counter_reset.check({limit}) == -Word(Errc::invalid_argument));
  }
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
