// The kernel of the token bucket as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/token_bucket.hpp"

#include <vector>

#include "sluice/extend/operation.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

struct Request {
  bool spends;
  Word cost;
};
constexpr Request acquire(Word cost) { return {true, cost}; }
constexpr Request peek(Word cost) { return {false, cost}; }

struct Answer {
  Word status;
  Word remaining;
  Span retry_after;
};
constexpr Answer allowed(Word remaining) { return {Verdict::allowed, remaining, 0us}; }
constexpr Answer refused(Span retry_after, Word remaining = 0) {
  return {Verdict::refused, remaining, retry_after};
}
constexpr Answer failed(Errc code) { return {-static_cast<Word>(code), 0, 0us}; }

struct Moment {
  Span at;
  Request request;
  Answer answer;
};

constexpr Word start = 946'684'800'000'000;

Verdict run(TokenBucketRule::State& state, const Quota& quota, Span at, const Request& request) {
  const auto args = TokenBucketRule::args(quota, request.cost);
  const Word now = start + at.count();
  return request.spends ? TokenBucketRule::acquire(state, args, now)
                        : TokenBucketRule::peek(state, args, now);
}

void check(const Quota& quota, const std::vector<Moment>& table) {
  TokenBucketRule::State state;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Moment& moment = table[i];
    INFO("moment " << i << ", at " << moment.at.count() << " us, cost " << moment.request.cost);
    const Verdict verdict = run(state, quota, moment.at, moment.request);
    CHECK(verdict.status == moment.answer.status);
    CHECK(verdict.remaining == moment.answer.remaining);
    CHECK(verdict.retry_after == moment.answer.retry_after.count());
  }
}

}  // namespace

TEST_CASE("spent tokens come back one by one, to the microsecond", "[core][token_bucket][C-005]") {
  check(Quota::per_second(10).burst(5), {
                                            {0ms, acquire(3), allowed(2)},
                                            {0ms, acquire(1), allowed(1)},
                                            {0ms, acquire(1), allowed(0)},
                                            {0ms, acquire(1), refused(100ms)},
                                            {99ms, acquire(1), refused(1ms)},
                                            {100ms - 1us, acquire(1), refused(1us)},
                                            {100ms, acquire(1), allowed(0)},
                                            {100ms, acquire(1), refused(100ms)},
                                            {150ms, acquire(5), refused(450ms)},
                                            {250ms, acquire(2), refused(50ms, 1)},
                                            {300ms, acquire(2), allowed(0)},
                                            {900ms, acquire(5), allowed(0)},
                                            {10s, acquire(5), allowed(0)},
                                        });
}

TEST_CASE("calls in one tick get the burst and no more", "[core][token_bucket][C-003]") {
  TokenBucketRule::State state;
  int admitted = 0;
  for (int i = 0; i < 50; ++i) {
    admitted += static_cast<int>(run(state, Quota::per_second(3), 100s, acquire(1)).status);
  }
  CHECK(admitted == 3);
}

TEST_CASE("a capacity below half the rate limits as well", "[core][token_bucket][C-020]") {
  const Quota quota = Quota::per_second(100).burst(49);
  check(quota, {{0ms, acquire(49), allowed(0)},
                {0ms, acquire(1), refused(10ms)},
                {10ms, acquire(1), allowed(0)},
                {490ms, acquire(49), refused(10ms, 48)},
                {500ms, acquire(49), allowed(0)}});
  Arguments args{};
  detail::pack(args, TokenBucketRule::args(quota, 1));
  CHECK(token_bucket_acquire.ttl(args) >= quota.full_after().count());
  CHECK(token_bucket_acquire.ttl(args) >= 1);
}

TEST_CASE("time counts in microseconds, not in seconds of the calendar",
          "[core][token_bucket][C-021]") {
  check(Quota::per_second(100), {{999ms, acquire(100), allowed(0)},
                                 {1000ms, acquire(100), refused(999ms)},
                                 {1009ms, acquire(1), allowed(0)}});
}

TEST_CASE("a clock that alternates by ten seconds mints no tokens", "[core][token_bucket][C-022]") {
  TokenBucketRule::State state;
  const Quota quota = Quota::per_second(1).burst(10);
  int admitted = 0;
  for (int i = 0; i < 100; ++i) {
    admitted += static_cast<int>(run(state, quota, 1010s, acquire(1)).status);
    admitted += static_cast<int>(run(state, quota, 1000s, acquire(1)).status);
  }
  CHECK(admitted == 10);
}

TEST_CASE("how often one asks does not change what is admitted", "[core][token_bucket][C-023]") {
  const Quota quota = Quota::per(1, 10s);
  TokenBucketRule::State polled;
  TokenBucketRule::State patient;
  std::vector<Word> grants;
  for (Word second = 0; second <= 40; ++second) {
    if (run(polled, quota, Span{second * 1'000'000}, acquire(1)).status == Verdict::allowed) {
      grants.push_back(second);
    }
  }
  CHECK(grants == std::vector<Word>{0, 10, 20, 30, 40});
  for (const Span at : {0s, 10s, 20s, 30s, 40s}) {
    CHECK(run(patient, quota, at, acquire(1)).status == Verdict::allowed);
  }
}

TEST_CASE("a cost below zero is an error, and a cost of zero asks without spending",
          "[core][token_bucket][C-024][C-058]") {
  check(Quota::per_second(10), {{0ms, acquire(-5), failed(Errc::invalid_cost)},
                                {0ms, acquire(INT64_MIN), failed(Errc::invalid_cost)},
                                {0ms, peek(-1), failed(Errc::invalid_cost)},
                                {0ms, acquire(0), allowed(10)},
                                {0ms, acquire(10), allowed(0)},
                                {0ms, acquire(0), allowed(0)},
                                {0ms, acquire(-1), failed(Errc::invalid_cost)},
                                {0ms, acquire(1), refused(100ms)}});
}

TEST_CASE("a cost above capacity is an error of its own, and spends nothing",
          "[core][token_bucket][C-025][C-057][C-059]") {
  check(Quota::per_second(10).burst(5),
        {{0ms, acquire(6), failed(Errc::cost_exceeds_capacity)},
         {0ms, acquire((Word{1} << 32) + 1), failed(Errc::cost_exceeds_capacity)},
         {0ms, acquire(INT64_MAX), failed(Errc::cost_exceeds_capacity)},
         {0ms, peek(6), failed(Errc::cost_exceeds_capacity)},
         {0ms, acquire(5), allowed(0)}});
}

TEST_CASE("a fraction of a token is kept, though only whole ones are shown",
          "[core][token_bucket][C-029]") {
  check(Quota::per_second(10).burst(2), {{0ms, acquire(2), allowed(0)},
                                         {190ms, peek(1), allowed(1)},
                                         {190ms, peek(2), refused(10ms, 1)},
                                         {190ms, acquire(1), allowed(0)},
                                         {200ms, acquire(1), allowed(0)}});
}

TEST_CASE("a question answers what a request would get, and spends nothing",
          "[core][token_bucket]") {
  check(Quota::per_second(10).burst(5), {{0ms, peek(5), allowed(5)},
                                         {0ms, peek(5), allowed(5)},
                                         {0ms, acquire(4), allowed(1)},
                                         {0ms, peek(2), refused(100ms, 1)},
                                         {99ms, peek(2), refused(1ms, 1)},
                                         {100ms, peek(2), allowed(2)},
                                         {100ms, acquire(2), allowed(0)}});
}

TEST_CASE("the hint is until enough tokens are back, not until the first",
          "[core][token_bucket][C-055]") {
  check(Quota::per_second(5),
        {{0ms, acquire(5), allowed(0)}, {500ms, acquire(3), refused(100ms, 2)}});
}

TEST_CASE("a rate beyond one a microsecond admits exactly its rate", "[core][token_bucket]") {
  for (const Word rate : {30'000, 300'000, 700'000, 1'500'000, 7'000'001}) {
    TokenBucketRule::State state;
    const Quota quota = Quota::per_second(rate).burst(1'000);
    Word admitted = 0;
    for (Word us = 0; us < 100'000; ++us) {
      for (int i = 0; i < 10; ++i) admitted += run(state, quota, Span{us}, acquire(1)).status;
    }
    INFO(rate);
    CHECK(admitted <= 1'000 + rate * 99'999 / 1'000'000);
    CHECK(admitted >= 1'000 + rate * 99'999 / 1'000'000 - 1);
  }
}

TEST_CASE("after the clock was set back a little, time stands still for a key",
          "[core][token_bucket][C-009]") {
  check(Quota::per_second(1).burst(2), {{100s, acquire(2), allowed(0)},
                                        {70s, acquire(1), refused(31s)},
                                        {40s, acquire(1), refused(61s)},
                                        {101s - 1us, acquire(1), refused(1us)},
                                        {101s, acquire(1), allowed(0)}});
}

TEST_CASE("after the clock was set back far, a key is not locked out, and gets one request",
          "[core][token_bucket][C-009]") {
  check(Quota::per_second(1).burst(2), {{100s, acquire(2), allowed(0)},
                                        {40s, acquire(1), refused(61s)},
                                        {40s - 1us, acquire(1), allowed(0)},
                                        {40s - 1us, acquire(1), refused(1s)},
                                        {41s - 1us, acquire(1), allowed(0)}});
}

TEST_CASE("a bucket is full again after full_after, and reset_after says when",
          "[core][token_bucket]") {
  TokenBucketRule::State state;
  const Quota quota = Quota::per(3, 7us).burst(4);
  CHECK(run(state, quota, 0us, acquire(4)).reset_after == 10);
  CHECK(run(state, quota, 9us, peek(4)).retry_after == 1);
  CHECK(run(state, quota, 10us, peek(4)).reset_after == 0);
  CHECK(run(state, quota, 10us, acquire(4)).status == Verdict::allowed);
}

TEST_CASE("a request that is not admitted leaves the state as it was", "[core][token_bucket]") {
  const Quota quota = Quota::per_second(10).burst(5);
  TokenBucketRule::State state;
  (void)run(state, quota, 0ms, acquire(5));
  const auto before = state;
  for (const Request request :
       {acquire(1), acquire(5), acquire(6), acquire(-1), acquire(0), peek(0), peek(3)}) {
    (void)run(state, quota, 50ms, request);
    CHECK(state.spent == before.spent);
    CHECK(state.stamp == before.stamp);
  }
}
