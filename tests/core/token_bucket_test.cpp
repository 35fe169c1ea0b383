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

TEST_CASE("spent tokens come back one by one, to the microsecond",
          "[core][token_bucket][C-003][C-005][C-029][C-055]") {
  check(Quota::per_second(10).burst(5), {
                                            {0ms, acquire(3), allowed(2)},
                                            {0ms, acquire(1), allowed(1)},
                                            {0ms, acquire(1), allowed(0)},
                                            {0ms, acquire(1), refused(100ms)},
                                            {99ms, peek(1), refused(1ms)},
                                            {100ms - 1us, acquire(1), refused(1us)},
                                            {100ms, peek(1), allowed(1)},
                                            {100ms, acquire(1), allowed(0)},
                                            {100ms, acquire(1), refused(100ms)},
                                            {150ms, acquire(5), refused(450ms)},
                                            {290ms, peek(1), allowed(1)},  // 1.9 tokens
                                            {290ms, acquire(2), refused(10ms, 1)},
                                            {300ms, acquire(2), allowed(0)},
                                            {900ms, acquire(5), allowed(0)},
                                            {10s, acquire(5), allowed(0)},
                                        });
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
