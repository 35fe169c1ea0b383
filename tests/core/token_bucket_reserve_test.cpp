// The kernels of the token bucket's full form as tables of moments: at this instant, this request,
// this answer. Threading: single-threaded.
#include "sluice/rules/token_bucket_reserve.hpp"

#include "tests/core/long_kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Change = TokenBucketReserve::Change;

constexpr Word start = 946'684'800'000'000;
constexpr Word token = 100'000;  // units, of which one drains a microsecond: ten tokens a second

/// How the state tells a level.
Word spent(Word level) { return token_bucket::word_of(level); }

struct Shape {
  Span interval = 1us;
  Span full_at = Span{-start};
};

Ask row(const Operation& operation, Word a, Word b, const Shape& shape) {
  return {&operation,
          {5, 1, token, shape.interval.count(), start + shape.full_at.count(), 60'000'000, a, b}};
}
Ask spend(Word cost, Span max_wait = 0s, const Shape& shape = {}) {
  return row(token_bucket_reserve, max_wait.count(), cost, shape);
}
Ask peek(Word cost, Span max_wait = 0s, const Shape& shape = {}) {
  return row(token_bucket_peek_reserve, max_wait.count(), cost, shape);
}
Ask some(Word least, Word most) { return row(token_bucket_reserve_some, least, most, {}); }
Ask set(Change change, Word amount) {
  return row(token_bucket_adjust, static_cast<Word>(change), amount, {});
}
/// Of a grant of `cost` that found `level` at `stamp`; perhaps a promise.
Ask give(Word cost, Word amount, Word level, Span stamp, bool promise = false) {
  return {
      &token_bucket_refund,
      {5, 1, token, 1, cost, amount, token_bucket::word_of(level, promise), start + stamp.count()}};
}

const Output nothing{0, 0, 0};

}  // namespace

TEST_CASE("a reservation is granted for when its tokens are there", "[core][token_bucket]") {
  check_moments(
      LongKernel(start),
      {{0ms, spend(5), admitted(0, 500ms), {5, spent(0), start}},
       {0ms, spend(1), turned_away(100ms, 500ms), nothing},
       {100ms - 1us, spend(1), turned_away(1us, 400ms + 1us)},
       {100ms, spend(1), admitted(0, 500ms)},
       {100ms, spend(1, 100ms - 1us), turned_away(1us, 500ms)},
       {100ms, spend(1, 250ms), admitted(0, 600ms, 100ms), {1, spent(5 * token), start + 100'000}},
       {100ms, spend(1, 250ms), admitted(0, 700ms, 200ms)},
       {100ms, peek(1, 250ms), turned_away(50ms, 700ms), nothing},
       {100ms, spend(1), turned_away(300ms, 700ms)},
       {150ms - 1us, spend(1, 250ms), turned_away(1us, 650ms + 1us)},
       {150ms, peek(1, 250ms), admitted(0, 650ms, 250ms)},
       {150ms, spend(1, 250ms), admitted(0, 750ms, 250ms)}});
}

TEST_CASE("as many tokens are taken as there are", "[core][token_bucket]") {
  check_moments(LongKernel(start),
                {{0ms, spend(3), admitted(2, 300ms)},
                 {0ms, some(3, 5), turned_away(100ms, 300ms, 2), nothing},
                 {0ms, some(1, 5), admitted(0, 500ms), {2, spent(3 * token), start}},
                 {0ms, some(1, 5), turned_away(100ms, 500ms), nothing},
                 {100ms - 1us, some(1, 5), turned_away(1us, 400ms + 1us)},
                 {100ms, some(1, 5), admitted(0, 500ms)},
                 {100ms, some(0, 5), admitted(0, 500ms), {0, spent(5 * token), start + 100'000}},
                 {300ms, some(1, 5), admitted(0, 500ms), {2, spent(3 * token), start + 300'000}}});
}

TEST_CASE("tokens that come in lumps come at whole intervals", "[core][token_bucket]") {
  const Shape lumps{.interval = 1s};
  check_moments(LongKernel(start), {{200ms, spend(5, 0s, lumps), admitted(0, 800ms)},
                                    {200ms, spend(1, 0s, lumps), turned_away(800ms, 800ms)},
                                    {200ms, spend(1, 800ms - 1us, lumps), turned_away(1us, 800ms)},
                                    {1s - 1us, spend(1, 0s, lumps), turned_away(1us, 1us)},
                                    {1s, spend(1, 0s, lumps), admitted(4, 1s)},
                                    {2s - 1us, peek(5, 0s, lumps), turned_away(1us, 1us, 4)},
                                    {2s, peek(5, 0s, lumps), admitted(5, 0s)}});
}

TEST_CASE("a bucket fills up to its first level", "[core][token_bucket]") {
  const Shape filling{.full_at = 1s};
  check_moments(LongKernel(start),
                {{0ms, spend(1, 0s, filling), turned_away(600ms, 1s)},
                 {600ms - 1us, spend(1, 0s, filling), turned_away(1us, 400ms + 1us)},
                 {600ms, peek(1, 0s, filling), admitted(1, 400ms)},
                 {600ms, spend(1, 0s, filling), admitted(0, 500ms)},
                 {1s, spend(1, 0s, filling), admitted(3, 200ms)}});
  // Full sixty seconds and more from now: the clock was set back, and one request is admitted.
  check_moments(LongKernel(start),
                {{-60s + 500ms - 1us, peek(2, 0s, filling), admitted(2, 300ms)},
                 {-60s + 500ms, peek(5, 0s, filling), turned_away(60'500ms, 60'500ms)}});
}

TEST_CASE("a bucket is emptied, filled and closed by hand", "[core][token_bucket]") {
  check_moments(LongKernel(start),
                {{0ms, set(Change::block, 10'000'000), admitted(0, 10'400ms)},
                 {0ms, spend(1), turned_away(10s, 10'400ms)},
                 {10s - 1us, spend(1), turned_away(1us, 400ms + 1us)},
                 {10s, spend(1), admitted(0, 500ms)},
                 {10s, set(Change::reward, 2), admitted(2, 300ms)},
                 {10s, set(Change::reward, 10), admitted(5, 0s)},
                 {10s, set(Change::charge, 7), admitted(0, 700ms), {7}},
                 {10s, spend(1), turned_away(300ms, 700ms)},
                 {10'300ms - 1us, spend(1), turned_away(1us, 400ms + 1us)},
                 {10'300ms, spend(1), admitted(0, 500ms)},
                 {10'300ms, set(Change::reset, 0), admitted(5, 0s)},
                 {10'300ms, set(Change::charge, word_limit), admitted(0, 60'500ms), {605}},
                 {10'300ms, set(Change::charge, 1), admitted(0, 60'500ms), {0}},
                 {10'300ms, set(Change::block, 0), admitted(0, 60'500ms), {0}},
                 {10'300ms, spend(1), turned_away(60'100ms, 60'500ms)}});
}

TEST_CASE("what is given back at once was never taken, later what has not drained of it",
          "[core][token_bucket]") {
  const auto after = [](std::vector<LongMoment> first, Span at, const Ask& ask,
                        const Verdict& answer, const Output& output) {
    first.push_back({at, ask, answer, output});
    check_moments(LongKernel(start), first);
  };
  const std::vector<LongMoment> alone{{0ms, spend(3), admitted(2, 300ms)}};
  after(alone, 0ms, give(3, 2, 0, 0s), admitted(4, 100ms), {2, 0, start});
  after(alone, 50ms, give(3, 2, 0, 0s), admitted(4, 50ms), {2, 0, start});
  after(alone, 200ms, give(3, 2, 0, 0s), admitted(5, 0s), {1, 0, start});
  after(alone, 300ms - 1us, give(3, 2, 0, 0s), admitted(5, 0s), {0, 0, start});
  after(alone, 300ms, give(3, 2, 0, 0s), admitted(5, 0s), {0, 0, start});
  auto followed = alone;
  followed.push_back({0ms, spend(1), admitted(1, 400ms)});
  after(followed, 100ms, give(3, 3, 0, 0s), admitted(5, 0s), {3, 0, start});
  followed.push_back({100ms, spend(1), admitted(1, 400ms)});
  after(followed, 100ms, give(3, 3, 0, 0s), admitted(3, 200ms), {2, 0, start});
  after(followed, 150ms, give(3, 3, 0, 0s), admitted(3, 150ms), {2, 0, start});
  after(followed, 100ms, give(3, 3, 0, 101ms), admitted(1, 400ms), {0, 0, start + 101'000});
}

TEST_CASE("in full, what has drained of it is given back as well, at most what is spent",
          "[core][token_bucket]") {
  const auto in_full = [](Ask ask) {
    ask.row = &token_bucket_refund_in_full;
    return ask;
  };
  check_moments(LongKernel(start),
                {{0ms, spend(5), admitted(0, 500ms)},
                 {400ms, spend(4), admitted(0, 500ms)},
                 {450ms, in_full(give(5, 3, 0, 0s)), admitted(3, 150ms), {3, 0, start + 0}},
                 {450ms, in_full(give(5, 2, 0, 0s)), admitted(5, 0s), {1, 0, start + 0}},
                 {500ms, in_full(give(5, 2, 0, 0s)), admitted(5, 0s), {0, 0, start + 0}}});
  // Later reservations keep their times; the last one comes back as if it had never been made.
  check_moments(LongKernel(start),
                {{0ms, spend(5), admitted(0, 500ms)},
                 {0ms, spend(2, 1s), admitted(0, 700ms, 200ms)},
                 {100ms, in_full(give(5, 5, 0, 0s)), admitted(0, 600ms), {0, 0, start}},
                 {100ms, in_full(give(2, 2, 5 * token, 0s)), admitted(1, 400ms), {2, 1, start}}});
}

TEST_CASE("a reservation is given back from the end of the queue only", "[core][token_bucket]") {
  const Ask first = give(1, 1, 5 * token, 0ms);
  const Ask last = give(1, 1, 5 * token, 100ms, true);
  check_moments(LongKernel(start),
                {{0ms, spend(5), admitted(0, 500ms)},
                 {0ms, spend(1, 1s), admitted(0, 600ms, 100ms), {1, spent(5 * token), start}},
                 {0ms,
                  spend(1, 1s),
                  admitted(0, 700ms, 200ms),
                  {1, token_bucket::word_of(5 * token, true), start + 100'000}},
                 {0ms, first, admitted(0, 700ms), {0, 0, start}},
                 {0ms, last, admitted(0, 600ms), {1, 1, start + 100'000}},
                 {0ms, last, admitted(0, 600ms), {0, 0, start + 100'000}},
                 {0ms, first, admitted(0, 500ms), {1, 1, start}},
                 {100ms - 1us, spend(1), turned_away(1us, 400ms + 1us)}});
}

TEST_CASE("a lump that covers a reservation leaves no less when that is given back",
          "[core][token_bucket]") {
  const Shape lumps{.interval = 1s};
  Ask cancel = give(2, 2, 4 * token, 0ms);
  cancel.args[3] = 1'000'000;
  Ask shrink = cancel;
  shrink.args[5] = 1;
  const std::vector<LongMoment> reserved{
      {200ms, spend(4, 0s, lumps), admitted(1, 800ms)},
      {300ms, spend(2, 1s, lumps), admitted(0, 700ms, 700ms), {2, spent(4 * token), start}}};
  auto cancelled = reserved;
  cancelled.insert(cancelled.end(), {{400ms, cancel, admitted(1, 600ms), {2, 1, start}},
                                     {400ms, cancel, admitted(1, 600ms), {0, 0, start}},
                                     {400ms, spend(1, 0s, lumps), admitted(0, 600ms)},
                                     {1s, peek(5, 0s, lumps), admitted(5, 0s)}});
  check_moments(LongKernel(start), cancelled);
  auto shrunk = reserved;
  shrunk.insert(shrunk.end(), {{400ms, shrink, admitted(0, 600ms), {1, 1, start}},
                               {1s, peek(5, 0s, lumps), admitted(5, 0s)}});
  check_moments(LongKernel(start), shrunk);
  auto late = reserved;
  late.push_back({1s, cancel, admitted(5, 0s), {0, 0, start}});
  check_moments(LongKernel(start), late);
}

TEST_CASE("what a lump has drained of a reservation by its time is not given back",
          "[core][token_bucket]") {
  const Shape lumps{.interval = 200ms};
  Ask cancel = give(5, 5, token, 0ms);
  cancel.args[3] = 200'000;
  // Two tokens come at 200 ms, when one would do: four of the five are spent then, at 400 ms two.
  // No more than 5 + 2 tokens are granted from 599 to 600 ms.
  check_moments(LongKernel(start),
                {{0ms, spend(1, 0s, lumps), admitted(4, 200ms)},
                 {0ms, spend(5, 1s, lumps), admitted(0, 600ms, 200ms), {5, spent(token), start}},
                 {599ms, spend(3, 0s, lumps), admitted(0, 401ms)},
                 {599ms, cancel, admitted(2, 201ms), {2, 0, start}},
                 {599ms, spend(3, 0s, lumps), turned_away(1ms, 201ms, 2)},
                 {599ms, spend(2, 0s, lumps), admitted(0, 401ms)},
                 {600ms, spend(2, 0s, lumps), admitted(0, 600ms)},
                 {600ms, spend(1, 0s, lumps), turned_away(200ms, 600ms)}});
}

TEST_CASE("beyond the longest reservation a stamp ahead is given up", "[core][token_bucket]") {
  const std::vector<LongMoment> spent{{100s, spend(5), admitted(0, 500ms)}};
  LongKernel kept(start);
  check_moments(kept, spent);
  check_moments(kept, {{40s, spend(1), turned_away(60'100ms, 60'500ms)}});
  check_moments(kept, {{40s - 1us, spend(2), admitted(0, 500ms)},
                       {140ms + 40s, spend(1), admitted(0, 460ms - 1us)}});
}

TEST_CASE("arguments of the full form out of range are errors", "[core][token_bucket][C-078]") {
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  const Verdict cost = Verdict::failed(Errc::invalid_cost);
  const Verdict large = Verdict::failed(Errc::cost_exceeds_capacity);
  check_moments(LongKernel(start), {{0s, spend(-1), cost},
                                    {0s, spend(6), large},
                                    {0s, spend(1, -1us), wrong},
                                    {0s, spend(1, 60s + 1us), wrong},
                                    {0s, spend(1, 0s, {.interval = 0us}), wrong},
                                    {0s, some(2, 1), wrong},
                                    {0s, some(-1, 1), cost},
                                    {0s, set(Change::charge, -1), cost},
                                    {0s, set(Change::reward, word_limit + 1), cost},
                                    {0s, set(Change::block, -1), wrong},
                                    {0s, set(static_cast<Change>(4), 0), wrong},
                                    {0s, set(Change::block, 60'000'001), wrong},
                                    {0s, give(-1, 0, 0, 0s), cost},
                                    {0s, give(6, 1, 0, 0s), large},
                                    {0s, give(1, 2, 0, 0s), wrong},
                                    {0s, give(1, 1, -1, 0s), wrong}});
  constexpr Word too_large = Word{1} << 51;  // a limit whose double is no word
  const Ask spends{&token_bucket_reserve, {1, 1, too_large, 1, 0, 60'000'000, 0, 1}};
  const Ask gives{&token_bucket_refund, {1, 1, too_large, 1, 1, 1, 0, start}};
  check_moments(LongKernel(start), {{0s, spends, wrong}, {0s, gives, wrong}});
}
