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

Ask take(Word cost, Word limit = 10, Span span = minute) {
  return {&sliding_window_counter_take, {limit, span.count(), cost}};
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
  check_moments(LongKernel(start), {{59s, take(10), admitted(0, 61s)},
                                    {60s, take(1), turned_away(6s, 60s)},
                                    {66s - 1us, take(1), turned_away(1us, 54s + 1us)},
                                    {66s - 1us, peek(1), turned_away(1us, 54s + 1us)},
                                    {66s, peek(1), admitted(1, 54s)},
                                    {66s, take(1), admitted(0, 114s)},
                                    {66s, take(1), turned_away(6s, 114s)},
                                    {72s - 1us, take(1), turned_away(1us, 108s + 1us)},
                                    {72s, take(1), admitted(0, 108s)},
                                    {120s, take(10), turned_away(60s, 60s, 8)},
                                    {180s - 1us, take(10), turned_away(1us, 1us, 9)},
                                    {180s, take(10), admitted(0, 120s)}});
}

TEST_CASE("what the current window holds must leave in the next one",
          "[core][sliding_window_counter]") {
  const std::vector<LongMoment> full{{0s, take(10), admitted(0, 120s)},
                                     {0s, take(1), turned_away(66s, 120s)},
                                     {0s, take(10), turned_away(120s, 120s)}};
  LongKernel one(start);
  check_moments(one, full);
  check_moments(
      one, {{66s - 1us, take(1), turned_away(1us, 54s + 1us)}, {66s, take(1), admitted(0, 114s)}});
  LongKernel all(start);
  check_moments(all, full);
  check_moments(all, {{120s - 1us, take(10), turned_away(1us, 1us, 9)},
                      {120s, take(10), admitted(0, 120s)},
                      {120s, reset(10), admitted(10, 0s)},
                      {120s, take(10), admitted(0, 120s)}});
}

TEST_CASE("another limit sees the same counts", "[core][sliding_window_counter]") {
  check_moments(LongKernel(start), {{0s, take(10), admitted(0, 120s)},
                                    {0s, take(1, 5), turned_away(96s, 120s)},
                                    {96s - 1us, take(1, 5), turned_away(1us, 24s + 1us)},
                                    {96s, take(1, 5), admitted(0, 84s)}});
  check_moments(LongKernel(start), {{0s, take(10), admitted(0, 120s)},
                                    {0s, take(3, 12), turned_away(66s, 120s, 2)},
                                    {0s, take(2, 12), admitted(0, 120s)}});
}

TEST_CASE("another span is told what the counts weigh, and at its own rate what has drained of it",
          "[core][sliding_window_counter]") {
  const Span grain = 31'250us;  // a 2048th of 64 s: so much later the last unit may have come
  LongKernel narrowed(start);
  check_moments(narrowed,
                {{0s, take(60, 64, 64s), admitted(4, 128s)},
                 {grain, take(1, 4, 2s), turned_away(28'500ms, 30s)},
                 {grain + 500ms - 1us, peek(0, 100, 50s), admitted(40, 29'500ms + 1us)},
                 {grain + 500ms, peek(0, 100, 50s), admitted(41, 29'500ms)},
                 {grain + 28'500ms - 1us, take(1, 4, 2s), turned_away(1us, 1'500ms + 1us)},
                 {grain + 28'500ms, take(2, 4, 2s), turned_away(500ms, 1'500ms, 1)}});
  CHECK(narrowed.state[1] == Span(64s).count());  // who is refused changes nothing
  // In 28.5 s 64 units and two a second more, and no more.
  check_moments(narrowed, {{grain + 28'500ms, take(1, 4, 2s), admitted(0, 3'500ms - grain)},
                           {grain + 28'500ms, peek(61, 64, 64s),
                            turned_away(1'000'977us, 3'500ms - grain, 60)},
                           {grain + 28'500ms, take(60, 64, 64s), admitted(0, 99'500ms - grain)}});
  check_moments(LongKernel(start), {{1s, take(4, 4, 2s), admitted(0, 3s)},
                                    {1s, peek(0, 64, 64s), admitted(60, 3s)},
                                    {2s, peek(0, 64, 64s), admitted(60, 2s)},
                                    {3s, take(63, 64, 64s), turned_away(500ms, 1s, 62)},
                                    {3s, take(62, 64, 64s), admitted(0, 125s)}});
}

TEST_CASE("what drains at the rate of another span is gone no later than what the counts weigh",
          "[core][sliding_window_counter]") {
  check_moments(LongKernel(start), {{0s, take(64, 64, 64s), admitted(0, 128s)},
                                    {64s, peek(0, 64, 128s), admitted(31, 64s)},
                                    {96s, peek(0, 64, 128s), admitted(47, 32s)},
                                    {96s, peek(0, 128, 64s), admitted(96, 32s)},
                                    {96s, peek(0, 1, 128s), turned_away(31s, 32s)},
                                    {128s - 1us, peek(1, 1, 128s), turned_away(1us, 1us)},
                                    {128s, take(1, 1, 128s), admitted(0, 256s)}});
}

TEST_CASE("who charges behind more than the limit leaves the longer windows as they are",
          "[core][sliding_window_counter]") {
  using enum Rule::Change;
  LongKernel kernel(start);
  check_moments(kernel, {{0s, take(60, 64, 64s), admitted(4, 128s)},
                         {0s, adjust(penalize, 5, 0s, 4, 2s), admitted(0, 32s + 531'250us), {5}},
                         {0s, peek(1, 65, 64s), turned_away(64'984'616us, 128s)}});
  CHECK(kernel.state[1] == Span(64s).count());
  check_moments(kernel, {{31s, adjust(charge, 1, 31s, 4, 2s), admitted(0, 3s), {1}}});
}

TEST_CASE("what comes back makes nobody else wait longer", "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(LongKernel(start),
                {{63s, take(60, 64, 64s), admitted(4, 65s)},
                 {65s, peek(0, 40, 2s), admitted(19, 1s + 31'250us)},
                 {65s, adjust(give_back, 4, 63s, 64, 64s), admitted(8, 63s), {4}},
                 {65s, peek(0, 40, 2s), admitted(23, 831'250us)},
                 {65s, adjust(reward, 6, 0s, 40, 2s), admitted(29, 531'250us), {6}},
                 {65s, peek(0, 64, 64s), admitted(14, 63s)}});
}

TEST_CASE("the worst case is met and not passed", "[core][sliding_window_counter]") {
  for (const Word limit : {1, 2, 7, 10, 100}) {
    LongKernel kernel(start);
    REQUIRE(kernel.ask(minute - 1us, take(limit, limit)).status == Verdict::allowed);
    Word admitted_units = limit;
    for (Span at = minute; at <= 2 * minute - 2us;) {
      const Verdict verdict = kernel.ask(at, take(1, limit));
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
  check_moments(LongKernel(start), {{100s, take(10), admitted(0, 80s)},
                                    {0s, take(1), turned_away(126s, 180s)},
                                    {-1us, peek(1), admitted(1, 60s + 1us)},
                                    {-1us, take(1), admitted(0, 60s + 1us)},
                                    {-1us, take(1), turned_away(6s + 1us, 60s + 1us)},
                                    {6s - 1us, take(1), turned_away(1us, 54s + 1us)},
                                    {6s, take(1), admitted(0, 114s)}});
}

TEST_CASE("the largest limit and span count to the unit and the microsecond",
          "[core][sliding_window_counter]") {
  const Span span{Rule::max_span};
  const Word most = Rule::max_limit;
  check_moments(LongKernel(10 * Rule::max_span),
                {{0s, take(most, most, span), admitted(0, 2 * span)},
                 {0s, take(1, most, span), turned_away(span + 4us, 2 * span)},
                 {span + 3us, take(1, most, span), turned_away(1us, span - 3us)},
                 {span + 4us, take(1, most, span), admitted(0, 2 * span - 4us)}});
}

TEST_CASE("a counter's arguments out of range are errors",
          "[core][sliding_window_counter][C-078]") {
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  check_moments(LongKernel(start), {{0s, take(1, 0), wrong},
                                    {0s, take(1, Rule::max_limit + 1), wrong},
                                    {0s, take(1, 10, 0us), wrong},
                                    {0s, take(1, 10, Span{Rule::max_span + 1}), wrong},
                                    {0s, take(-1), Verdict::failed(Errc::invalid_cost)},
                                    {0s, peek(11), Verdict::failed(Errc::cost_exceeds_capacity)},
                                    {0s, take(0), admitted(10, 0s)},
                                    {0s, take(10), admitted(0, 120s)}});
  CHECK(sliding_window_counter_reset.check({0}) == wrong.status);
  CHECK(sliding_window_counter_reset.check({Rule::max_limit + 1}) == wrong.status);
}

TEST_CASE("counts that no counter leaves are a corrupt state", "[core][sliding_window_counter]") {
  const std::vector<std::pair<std::size_t, Word>> flaws{{0, -1},
                                                        {0, word_limit + 1},
                                                        {1, Rule::max_span + 1},
                                                        {2, Rule::max_limit + 1},
                                                        {3, Rule::max_limit + 1}};
  for (const auto& [index, value] : flaws) {
    LongKernel kernel(start);
    kernel.ask(0s, take(1));
    kernel.state[index] = value;
    CHECK(kernel.ask(0s, take(1)) == Verdict::failed(Errc::corrupt_state));
    CHECK(kernel.ask(0s, peek(0)) == Verdict::failed(Errc::corrupt_state));
  }
}

TEST_CASE("units come back in the window in which they were taken",
          "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(LongKernel(start), {{0s, adjust(give_back, 1), admitted(10, 0s), {0}},
                                    {30s, take(8), admitted(2, 90s)},
                                    {59s, adjust(give_back, 3, 30s), admitted(5, 61s), {3}},
                                    {60s, take(4), admitted(1, 120s)},
                                    {90s, adjust(give_back, 4, 30s), admitted(5, 90s), {4}},
                                    {90s, adjust(give_back, 4, 30s), admitted(6, 90s), {1}},
                                    {90s, adjust(give_back, 9, 60s), admitted(10, 0s), {4}},
                                    {119s, take(2), admitted(8, 61s)},
                                    {180s - 1us, adjust(give_back, 1, 119s), admitted(9, 1us), {1}},
                                    {180s, adjust(give_back, 1, 119s), admitted(10, 0s), {0}}});
}

TEST_CASE("a charge lies in its window, and what remains is never below zero",
          "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(LongKernel(start),
                {{30s, take(8), admitted(2, 90s)},
                 {60s, adjust(charge, 12, 30s), admitted(0, 60s), {12}},
                 {60s, take(1), turned_away(33s, 60s)},
                 {93s - 1us, take(1), turned_away(1us, 27s + 1us)},
                 {93s, take(1), admitted(0, 87s)},
                 {93s, adjust(penalize, word_limit), admitted(0, 87s), {Rule::max_limit - 1}},
                 {93s, adjust(penalize, 1), admitted(0, 87s), {0}},
                 {93s, adjust(reward, word_limit), admitted(1, 27s), {Rule::max_limit}},
                 {180s, adjust(charge, 5, 93s), admitted(10, 0s), {0}}});
}

TEST_CASE("a reward is taken off the current window first", "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(LongKernel(start), {{30s, take(6), admitted(4, 90s)},
                                    {90s, take(4), admitted(3, 90s)},
                                    {90s, adjust(reward, 5), admitted(7, 30s), {5}},
                                    {90s, adjust(reward, 9), admitted(10, 0s), {5}},
                                    {90s, adjust(reward, 9), admitted(10, 0s), {0}}});
}

TEST_CASE("what another span has weighed cannot be given back", "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(
      LongKernel(start),
      {{10s, take(4), admitted(6, 110s)},
       {10s, adjust(give_back, 4, 10s, 10, 30s), admitted(6, 12'019'532us), {0}},
       {10s, take(1, 10, 30s), admitted(5, 50s)},
       {10s, adjust(give_back, 4, 10s - 1us, 10, 30s), admitted(5, 50s), {0}},
       {10s, adjust(give_back, 4, 10s), admitted(5, 30'004'883us), {0}},
       {10s, adjust(give_back, 4, 10s, 10, 30s), admitted(9, 50s), {4}},
       {10s, adjust(static_cast<Rule::Change>(4), 1), Verdict::failed(Errc::invalid_argument)},
       {10s, adjust(reward, word_limit + 1), Verdict::failed(Errc::invalid_cost)},
       {10s, adjust(reward, -1), Verdict::failed(Errc::invalid_cost)}});
}

TEST_CASE("a block admits nothing until its end, and the counts go on meanwhile",
          "[core][sliding_window_counter]") {
  LongKernel kernel(start);
  check_moments(kernel, {{59s, take(10), admitted(0, 61s)},
                         {60s, block(3s), admitted(0, 60s)},
                         {60s, take(1), turned_away(6s, 60s)},  // the counts last longer
                         {60s, block(12s), admitted(0, 60s)},
                         {66s, block(5s), admitted(0, 54s)},  // a later one stands
                         {66s, block(0s), admitted(0, 54s)},
                         {66s, take(0), turned_away(6s, 54s)},
                         {66s, peek(1), turned_away(6s, 54s)},
                         {66s, peek(3), turned_away(12s, 54s)},
                         {72s - 1us, take(1), turned_away(1us, 48s + 1us)}});
  CHECK(kernel.state.size() == 6);
  check_moments(kernel, {{72s, peek(1), admitted(2, 48s)},
                         {72s, take(2), admitted(0, 108s)},
                         {72s, take(1), turned_away(6s, 108s)}});
  CHECK(kernel.state[1] == minute.count());  // no block is looked for any more
}

TEST_CASE("a key that nobody used is blocked, and counts change behind a block",
          "[core][sliding_window_counter]") {
  using enum Rule::Change;
  check_moments(LongKernel(start), {{0s, block(5min), admitted(0, 5min)},
                                    {0s, take(10), turned_away(5min, 5min)},
                                    {5min - 1us, take(1), turned_away(1us, 1us)},
                                    {5min, take(10), admitted(0, 120s)},
                                    {5min, block(6s), admitted(0, 120s)},
                                    {5min, adjust(give_back, 4, 5min), admitted(0, 120s), {4}},
                                    {5min, adjust(reward, 1), admitted(0, 120s), {1}},
                                    {5min, adjust(penalize, 2), admitted(0, 120s), {2}},
                                    {5min, take(3), turned_away(6s, 120s)},
                                    {5min + 6s, take(4), turned_away(62'571'429us, 114s, 3)},
                                    {5min + 6s, take(3), admitted(0, 114s)},
                                    {5min + 6s, block(10h), admitted(0, 10h)},
                                    {5min + 6s, reset(10), admitted(10, 0s)},
                                    {5min + 6s, take(10), admitted(0, 114s)}});
  // Whatever span who asks has.
  check_moments(LongKernel(start), {{0s, take(4), admitted(6, 120s)},
                                    {0s, block(20s, 9, 10s), admitted(0, 20s)},
                                    {10s, take(1, 9, 10s), turned_away(10s, 10s)},
                                    {10s, adjust(penalize, 1, 0s, 9, 10s), admitted(0, 20s), {1}},
                                    {20s, take(9, 9, 10s), turned_away(10s, 10s, 8)},
                                    {20s, take(4, 9, 10s), admitted(4, 20s)}});
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
                                    {longest - 1us, take(1), turned_away(1us, 1us)},
                                    {longest, take(10), admitted(0, 120s)}});
  CHECK(Span{sliding_window_counter_block.ttl({10, minute.count(), longest.count()})} >=
        longest + 2 * minute);
  LongKernel strange(start);
  strange.state = {start, Rule::blocked + Rule::max_span + 1, 0, 0};
  CHECK(strange.ask(0s, take(1)) == Verdict::failed(Errc::corrupt_state));
  CHECK(strange.ask(0s, block(1s)) == Verdict::failed(Errc::corrupt_state));
}
