// The kernels of the token bucket's full form as tables of moments: at this instant, this request,
// this answer. Threading: single-threaded.
#include "sluice/rules/token_bucket_reserve.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Change = TokenBucketReserve::Change;

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
      Kernel(),
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

TEST_CASE("tokens that come in lumps come at whole intervals", "[core][token_bucket]") {
  const Shape lumps{.interval = 1s};
  check_moments({{200ms, spend(5, 0s, lumps), admitted(0, 800ms)},
                 {200ms, spend(1, 0s, lumps), turned_away(800ms, 800ms)},
                 {200ms, spend(1, 800ms - 1us, lumps), turned_away(1us, 800ms)},
                 {1s - 1us, spend(1, 0s, lumps), turned_away(1us, 1us)},
                 {1s, spend(1, 0s, lumps), admitted(4, 1s)},
                 {2s - 1us, peek(5, 0s, lumps), turned_away(1us, 1us, 4)},
                 {2s, peek(5, 0s, lumps), admitted(5, 0s)}});
}

TEST_CASE("what is given back is what has not drained of a grant, in full all that is spent",
          "[core][token_bucket]") {
  const auto in_full = [](Ask ask) {
    ask.row = &token_bucket_refund_in_full;
    return ask;
  };
  const std::vector<Moment> grants{{0ms, spend(5), admitted(0, 500ms)},
                                   {400ms, spend(4), admitted(0, 500ms)}};
  Kernel undrained(start);
  check_moments(undrained, grants);
  check_moments(undrained, {{450ms, give(5, 3, 0, 0s), admitted(1, 350ms), {1, 0, start}}});
  Kernel full(start);
  check_moments(full, grants);
  check_moments(full, {{450ms, in_full(give(5, 3, 0, 0s)), admitted(3, 150ms), {3, 0, start}},
                       {450ms, in_full(give(5, 2, 0, 0s)), admitted(5, 0s), {1, 0, start}},
                       {500ms, in_full(give(5, 2, 0, 0s)), admitted(5, 0s), {0, 0, start}}});
}

TEST_CASE("arguments of the full form out of range are errors", "[core][token_bucket][C-078]") {
  constexpr Word too_large = Word{1} << 51;  // a limit whose double is no word
  check_errors(Errc::invalid_argument,
               {spend(1, -1us), spend(1, 60s + 1us), spend(1, 0s, {.interval = 0us}), some(2, 1),
                set(Change::block, -1), set(static_cast<Change>(4), 0),
                set(Change::block, 60'000'001), give(1, 2, 0, 0s), give(1, 1, -1, 0s),
                Ask{&token_bucket_reserve, {1, 1, too_large, 1, 0, 60'000'000, 0, 1}},
                Ask{&token_bucket_refund, {1, 1, too_large, 1, 1, 1, 0, start}}});
  check_errors(Errc::invalid_cost, {spend(-1), some(-1, 1), set(Change::charge, -1),
                                    set(Change::reward, word_limit + 1), give(-1, 0, 0, 0s)});
  check_errors(Errc::cost_exceeds_capacity, {spend(6), give(6, 1, 0, 0s)});
}
