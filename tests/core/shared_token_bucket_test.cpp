// The kernel of the shared token bucket as tables of moments: at this instant, this request, this
// answer. Threading: single-threaded.
#include "sluice/rules/shared_token_bucket_reserve.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

constexpr Word token = 100'000;  // units, of which one drains a microsecond: ten tokens a second
constexpr Span keep_alive = 1h;

Ask set(Word capacity, Inheritance inheritance = Inheritance::reset, Word period = token) {
  return {&shared_token_bucket_configure,
          {capacity, 1, period, keep_alive.count(), static_cast<Word>(inheritance), 0}};
}
Ask set_first(Word capacity) {
  return {&shared_token_bucket_configure, {capacity, 1, token, keep_alive.count(), 0, 1}};
}
Ask acquire(Word cost) { return {&shared_token_bucket_acquire, {0, cost, keep_alive.count()}}; }
Ask peek(Word cost) { return {&shared_token_bucket_peek, {0, cost, keep_alive.count()}}; }
Ask spend(Word cost, Span max_wait) {
  return {&shared_token_bucket_reserve, {0, cost, keep_alive.count(), max_wait.count()}};
}
/// What is given back of a grant that told this.
struct Told {
  Word cost, level;
  Span stamp;
  Word version = 1;
  Word spent = level;
};
Ask give(const Told& t, Word amount) {
  return {&shared_token_bucket_refund,
          {0, t.cost, keep_alive.count(), amount, t.level, start + t.stamp.count(), t.version,
           t.spent}};
}
using Change = SharedTokenBucketReserve::Change;
Ask adjust(Change change, Word amount) {
  return {&shared_token_bucket_adjust, {0, static_cast<Word>(change), keep_alive.count(), amount}};
}
Ask block(Span span) { return adjust(Change::block, span.count()); }

const Verdict none = Verdict::failed(Errc::not_configured);

}  // namespace

TEST_CASE("a shared token bucket decides by the quota that it finds, to the microsecond",
          "[core][shared_token_bucket]") {
  check_moments({{0ms, acquire(1), none},
                 {0ms, peek(0), none},
                 {0ms, set_first(5), admitted(5, 0s), {1, 1}},
                 {0ms, set_first(9), admitted(5, 0s), {1, 0}},
                 {0ms, acquire(3), admitted(2, 300ms), {1, 5, 1, token}},
                 {0ms, acquire(3), turned_away(100ms, 300ms, 2), {1, 5, 1, token}},
                 {100ms - 1us, acquire(3), turned_away(1us, 200ms + 1us, 2)},
                 {100ms - 1us, peek(3), turned_away(1us, 200ms + 1us, 2)},
                 {100ms, peek(3), admitted(3, 200ms)},
                 {100ms, acquire(3), admitted(0, 500ms)},
                 {100ms, acquire(6), Verdict::failed(Errc::cost_exceeds_capacity)}});
}

TEST_CASE("what is spent stays spent over a quota of never or unlimited, and drains",
          "[core][shared_token_bucket][constant]") {
  for (const Word constant : {Word{0}, unlimited}) {
    const auto put = [&](Inheritance how = Inheritance::as_is) { return set(constant, how, 1); };
    const Verdict stands{Verdict::allowed, constant, 0, 0};
    for (const Inheritance how : {Inheritance::as_is, Inheritance::proportional,
                                  Inheritance::additive, Inheritance::reset}) {
      check_moments({{0ms, set(10), admitted(10, 0s)},
                     {0ms, acquire(8), admitted(2, 800ms)},
                     {0ms, put(how), stands, {2, 1}},
                     {0ms, put(), stands, {2, 0}},
                     {0ms, peek(0), stands, {2, constant, 1, token}},
                     {300ms, set(10, how), admitted(5, 500ms), {3, 1}},
                     {300ms, put(how), stands, {4, 1}},
                     {300ms, put(how), stands},
                     {300ms, set(20, how, token / 2), admitted(15, 250ms)}});
    }
    // Behind a block, which is beyond what a clock is corrected by.
    check_moments({{0ms, set(10), admitted(10, 0s)},
                   {0ms, block(1min), admitted(0, 60s + 900ms)},
                   {0ms, put(), stands},
                   {0ms, set(10, Inheritance::as_is), admitted(0, 61s - 1us)}});
    // A first quota.
    check_moments({{0ms, put(), stands, {1, 1}},
                   {0ms, peek(0), stands, {1, constant, 1, 1}},
                   {0ms, set(10, Inheritance::as_is), admitted(10, 0s)}});
    // What gives back or changes has no effect.
    check_moments({{0ms, set(10), admitted(10, 0s)},
                   {0ms, spend(4, 0s), admitted(6, 400ms)},
                   {0ms, put(), stands},
                   {0ms, give({4, 0, 0s, 2}, 4), stands, {0, 0, 0}},
                   {0ms, adjust(Change::reset, 0), stands, {2, constant, 0}},
                   {0ms, adjust(Change::reward, 3), stands, {2, constant, 0}},
                   {0ms, adjust(Change::charge, 3), stands, {2, constant, 0}},
                   {0ms, block(1s), stands, {2, constant, 0}},
                   {0ms, set(10, Inheritance::as_is), admitted(6, 400ms)}});
  }
}

TEST_CASE("a quota of never refuses for ever, and an unlimited one is kept by its use",
          "[core][shared_token_bucket][constant]") {
  const Verdict never{Verdict::refused, 0, word_limit, 0};
  const Verdict all{Verdict::allowed, unlimited, 0, 0};
  check_moments({{0ms, set(0, Inheritance::as_is, 1), {1, 0, 0, 0}},
                 {0ms, acquire(1), never, {1, 0, 1, 1}},
                 {0ms, spend(1, 1min), never, {0, 0, 0, 0, 0, 0}},
                 {0ms, spend(0, 1min), {1, 0, 0, 0}, {0, 0, 0, 0, 0, 0}},
                 {1h - 1us, acquire(word_limit), never},
                 {1h, acquire(1), none}});
  check_moments({{0ms, set(unlimited, Inheritance::as_is, 1), all},
                 {0ms, spend(word_limit, 0s), all, {word_limit, 0, 0, 0, 0, unlimited}},
                 {30min, acquire(7), all, {1, unlimited, 1, 1}},
                 {1h + 1min, acquire(0), all},
                 {1h + 30min - 1us, spend(1, 0s), all},
                 {2h, acquire(1), all},
                 {2h + 30min, acquire(0), all},  // which is no use
                 {3h, acquire(1), none}});
  for (const Word constant : {Word{0}, unlimited}) {
    check_moments({{0s, set(constant),
                    Verdict::failed(Errc::invalid_argument)}});  // with the period of a rate
  }
  CHECK(Kernel().ask(0s, set(unlimited - 1, Inheritance::as_is, 1)).status == -38);
}

TEST_CASE("a quota that is none is a corrupt state", "[core][shared_token_bucket]") {
  Kernel kernel;
  kernel.ask(0s, set(5));
  check_corrupt(kernel, 0s, {{1, -1}, {2, 0}, {2, word_limit}, {3, 0}, {3, word_limit}, {4, -1}},
                {acquire(1), set(5)});
}
