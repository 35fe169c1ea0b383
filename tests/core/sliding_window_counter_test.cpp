// The kernel of the sliding window counter as tables of moments: at this instant, this request,
// this answer. Threading: single-threaded.
#include "sluice/rules/sliding_window_counter.hpp"

#include "tests/core/long_kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = SlidingWindowCounterRule;

constexpr Word start = 946'684'800'000'000;  // a minute begins
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
Ask reset(Word limit) { return {&sliding_window_counter_reset, {limit}}; }

}  // namespace

TEST_CASE("the window before weighs what a sliding window would still cover of it",
          "[core][sliding_window_counter]") {
  check_moments(LongKernel(start), {{59s, acquire(10), admitted(0, 61s)},
                                    {60s, acquire(1), turned_away(6s, 60s)},
                                    {66s - 1us, acquire(1), turned_away(1us, 54s + 1us)},
                                    {66s - 1us, peek(1), turned_away(1us, 54s + 1us)},
                                    {66s, peek(1), admitted(1, 54s)},
                                    {66s, acquire(1), admitted(0, 114s)},
                                    {66s, acquire(1), turned_away(6s, 114s)},
                                    {72s - 1us, acquire(1), turned_away(1us, 108s + 1us)},
                                    {72s, acquire(1), admitted(0, 108s)},
                                    {120s, acquire(10), turned_away(60s, 60s, 8)},
                                    {180s - 1us, acquire(10), turned_away(1us, 1us, 9)},
                                    {180s, acquire(10), admitted(0, 120s)}});
}

TEST_CASE("what the current window holds must leave in the next one",
          "[core][sliding_window_counter]") {
  const std::vector<LongMoment> full{{0s, acquire(10), admitted(0, 120s)},
                                     {0s, acquire(1), turned_away(66s, 120s)},
                                     {0s, acquire(10), turned_away(120s, 120s)}};
  LongKernel one(start);
  check_moments(one, full);
  check_moments(one, {{66s - 1us, acquire(1), turned_away(1us, 54s + 1us)},
                      {66s, acquire(1), admitted(0, 114s)}});
  LongKernel all(start);
  check_moments(all, full);
  check_moments(all, {{120s - 1us, acquire(10), turned_away(1us, 1us, 9)},
                      {120s, acquire(10), admitted(0, 120s)},
                      {120s, reset(10), admitted(10, 0s)},
                      {120s, acquire(10), admitted(0, 120s)}});
}

TEST_CASE("another limit sees the same counts", "[core][sliding_window_counter]") {
  check_moments(LongKernel(start), {{0s, acquire(10), admitted(0, 120s)},
                                    {0s, acquire(1, 5), turned_away(96s, 120s)},
                                    {96s - 1us, acquire(1, 5), turned_away(1us, 24s + 1us)},
                                    {96s, acquire(1, 5), admitted(0, 84s)}});
  check_moments(LongKernel(start), {{0s, acquire(10), admitted(0, 120s)},
                                    {0s, acquire(3, 12), turned_away(66s, 120s, 2)},
                                    {0s, acquire(2, 12), admitted(0, 120s)}});
}

TEST_CASE("the worst case is met and not passed", "[core][sliding_window_counter]") {
  for (const Word limit : {1, 2, 7, 10, 100}) {
    LongKernel kernel(start);
    REQUIRE(kernel.ask(minute - 1us, acquire(limit, limit)).status == Verdict::allowed);
    Word admitted_units = limit;
    for (Span at = minute; at <= 2 * minute - 2us;) {
      const Verdict verdict = kernel.ask(at, acquire(1, limit));
      admitted_units += verdict.status;
      at += Span{verdict.retry_after};
    }
    CHECK(admitted_units == Rule::worst_case(limit, minute.count()));
  }
  CHECK(Rule::worst_case(10, minute.count()) == 19);
  CHECK(Rule::worst_case(10, 1) == 10);
}

TEST_CASE("beyond a minute back the counter restarts with one request",
          "[core][sliding_window_counter]") {
  check_moments(LongKernel(start), {{100s, acquire(10), admitted(0, 80s)},
                                    {0s, acquire(1), turned_away(126s, 180s)},
                                    {-1us, peek(1), admitted(1, 60s + 1us)},
                                    {-1us, acquire(1), admitted(0, 60s + 1us)},
                                    {-1us, acquire(1), turned_away(6s + 1us, 60s + 1us)},
                                    {6s - 1us, acquire(1), turned_away(1us, 54s + 1us)},
                                    {6s, acquire(1), admitted(0, 114s)}});
}

TEST_CASE("the largest limit and span count to the unit and the microsecond",
          "[core][sliding_window_counter]") {
  const Span span{Rule::max_span};
  const Word most = Rule::max_limit;
  check_moments(LongKernel(10 * Rule::max_span),
                {{0s, acquire(most, most, span), admitted(0, 2 * span)},
                 {0s, acquire(1, most, span), turned_away(span + 4us, 2 * span)},
                 {span + 3us, acquire(1, most, span), turned_away(1us, span - 3us)},
                 {span + 4us, acquire(1, most, span), admitted(0, 2 * span - 4us)}});
}

TEST_CASE("a counter's arguments out of range are errors",
          "[core][sliding_window_counter][C-078]") {
  using enum Rule::Change;
  const Verdict cost = Verdict::failed(Errc::invalid_cost);
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  check_moments(LongKernel(start), {{0s, acquire(1, 0), wrong},
                                    {0s, acquire(1, Rule::max_limit + 1), wrong},
                                    {0s, acquire(1, 10, 0us), wrong},
                                    {0s, acquire(1, 10, Span{Rule::max_span + 1}), wrong},
                                    {0s, acquire(-1), cost},
                                    {0s, peek(11), Verdict::failed(Errc::cost_exceeds_capacity)},
                                    {0s, acquire(0), admitted(10, 0s)},
                                    {0s, acquire(10), admitted(0, 120s)},
                                    {0s, adjust(static_cast<Rule::Change>(4), 1), wrong},
                                    {0s, adjust(reward, word_limit + 1), cost},
                                    {0s, adjust(reward, -1), cost}});
  CHECK(sliding_window_counter_reset.check({0}) == wrong.status);
  CHECK(sliding_window_counter_reset.check({Rule::max_limit + 1}) == wrong.status);
}

TEST_CASE("counts that no counter leaves are a corrupt state", "[core][sliding_window_counter]") {
  const std::vector<std::pair<std::size_t, Word>> flaws{{0, -1},
                                                        {0, word_limit + 1},
                                                        {1, Rule::max_limit + 1},
                                                        {2, Rule::max_limit + 1},
                                                        {3, word_limit + 1}};
  for (const auto& [index, value] : flaws) {
    LongKernel kernel(start);
    kernel.ask(0s, acquire(1));
    kernel.state.resize(4);
    kernel.state[index] = value;
    CHECK(kernel.ask(0s, acquire(1)) == Verdict::failed(Errc::corrupt_state));
    CHECK(kernel.ask(0s, peek(0)) == Verdict::failed(Errc::corrupt_state));
  }
}

TEST_CASE("units come back in the window in which they were taken",
          "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(LongKernel(start), {{0s, adjust(refund, 1), admitted(10, 0s), {0}},
                                    {30s, acquire(8), admitted(2, 90s)},
                                    {59s, adjust(refund, 3, 30s), admitted(5, 61s), {3}},
                                    {60s, acquire(4), admitted(1, 120s)},
                                    {90s, adjust(refund, 4, 30s), admitted(5, 90s), {4}},
                                    {90s, adjust(refund, 4, 30s), admitted(6, 90s), {1}},
                                    {90s, adjust(refund, 9, 60s), admitted(10, 0s), {4}},
                                    {119s, acquire(2), admitted(8, 61s)},
                                    {180s - 1us, adjust(refund, 1, 119s), admitted(9, 1us), {1}},
                                    {180s, adjust(refund, 1, 119s), admitted(10, 0s), {0}}});
}

TEST_CASE("a charge lies in its window, and what remains is never below zero",
          "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(LongKernel(start),
                {{30s, acquire(8), admitted(2, 90s)},
                 {60s, adjust(charge, 12, 30s), admitted(0, 60s), {12}},
                 {60s, acquire(1), turned_away(33s, 60s)},
                 {93s - 1us, acquire(1), turned_away(1us, 27s + 1us)},
                 {93s, acquire(1), admitted(0, 87s)},
                 {93s, adjust(penalize, word_limit), admitted(0, 87s), {Rule::max_limit - 1}},
                 {93s, adjust(penalize, 1), admitted(0, 87s), {0}},
                 {93s, adjust(reward, word_limit), admitted(1, 27s), {Rule::max_limit}},
                 {180s, adjust(charge, 5, 93s), admitted(10, 0s), {0}}});
}

TEST_CASE("a reward is taken off the current window first", "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(LongKernel(start), {{30s, acquire(6), admitted(4, 90s)},
                                    {90s, acquire(4), admitted(3, 90s)},
                                    {90s, adjust(reward, 5), admitted(7, 30s), {5}},
                                    {90s, adjust(reward, 9), admitted(10, 0s), {5}},
                                    {90s, adjust(reward, 9), admitted(10, 0s), {0}}});
}

TEST_CASE("a block admits nothing until its end, and the counts go on meanwhile",
          "[core][sliding_window_counter]") {
  LongKernel kernel(start);
  check_moments(kernel, {{59s, acquire(10), admitted(0, 61s)},
                         {60s, block(3s), admitted(0, 60s)},
                         {60s, acquire(1), turned_away(6s, 60s)},  // the counts last longer
                         {60s, block(12s), admitted(0, 60s)},
                         {66s, block(5s), admitted(0, 54s)},  // a later one stands
                         {66s, block(0s), admitted(0, 54s)},
                         {66s, acquire(0), turned_away(6s, 54s)},
                         {66s, peek(1), turned_away(6s, 54s)},
                         {66s, peek(3), turned_away(12s, 54s)},
                         {72s - 1us, acquire(1), turned_away(1us, 48s + 1us)}});
  CHECK(kernel.state.size() == 4);
  check_moments(kernel, {{72s, peek(1), admitted(2, 48s)},
                         {72s, acquire(2), admitted(0, 108s)},
                         {72s, acquire(1), turned_away(6s, 108s)}});
  CHECK(kernel.state[3] == 0);  // a clock that is set back does not close the key again
}

TEST_CASE("a key that nobody used is blocked, and counts change behind a block",
          "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(LongKernel(start), {{0s, block(5min), admitted(0, 5min)},
                                    {0s, acquire(10), turned_away(5min, 5min)},
                                    {5min - 1us, acquire(1), turned_away(1us, 1us)},
                                    {5min, acquire(10), admitted(0, 120s)},
                                    {5min, block(6s), admitted(0, 120s)},
                                    {5min, adjust(refund, 4, 5min), admitted(0, 120s), {4}},
                                    {5min, adjust(reward, 1), admitted(0, 120s), {1}},
                                    {5min, adjust(penalize, 2), admitted(0, 120s), {2}},
                                    {5min, acquire(3), turned_away(6s, 120s)},
                                    {5min + 6s, acquire(4), turned_away(62'571'429us, 114s, 3)},
                                    {5min + 6s, acquire(3), admitted(0, 114s)},
                                    {5min + 6s, block(10h), admitted(0, 10h)},
                                    {5min + 6s, reset(10), admitted(10, 0s)},
                                    {5min + 6s, acquire(10), admitted(0, 114s)}});
}

TEST_CASE("a block that cannot be is an error of the counter",
          "[core][sliding_window_counter][C-006]") {
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  const Span longest{Rule::max_block};
  check_moments(LongKernel(start), {{0s, block(-1us), wrong},
                                    {0s, block(longest + 1us), wrong},
                                    {0s, block(1s, 0), wrong},
                                    {0s, block(1s, 10, 0us), wrong},
                                    {0s, block(0s), admitted(10, 0s)},
                                    {0s, block(longest), admitted(0, longest)},
                                    {longest - 1us, acquire(1), turned_away(1us, 1us)},
                                    {longest, acquire(10), admitted(0, 120s)}});
  CHECK(Span{sliding_window_counter_block.ttl({10, minute.count(), longest.count()})} >=
        longest + 2 * minute);
}
