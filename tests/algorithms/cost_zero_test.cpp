// A request of cost 0, of every limiter, in every form, on every store: it is decided by the same
// formula as every other cost. It fits unless more is owed than the limit, the key is blocked, or
// what was promised lies ahead; and it writes nothing. Threading: single-threaded.
#include <array>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// What every form that does not wait answers to a cost of 0.
template <class Limiter>
std::vector<Decision> answers(const Limiter& limiter, Random& random) {
  std::vector<Decision> all{limiter.peek("k", 0), limiter.try_acquire("k", 0),
                            limiter.try_acquire("k", 0, RequestId::draw(random))};
  if constexpr (requires { limiter.acquire_steps("k", 0); }) {
    all.push_back(decide(limiter.store(), limiter.acquire_steps("k", 0)));
    all.push_back(decide(limiter.store(), limiter.peek_steps("k", 0)));
  } else {
    all.push_back(decide(limiter.store(), limiter.acquire_step("k", 0)));
    all.push_back(decide(limiter.store(), limiter.peek_step("k", 0)));
  }
  if constexpr (requires { limiter.reserve("k", 0, 0s); }) {
    all.push_back(limiter.reserve("k", 0, 0s));
  }
  if constexpr (requires { limiter.borrow("k", 0, 0s); }) {
    all.push_back(limiter.borrow("k", 0, 0s));
  }
  if constexpr (requires { limiter.try_acquire_up_to("k", 0, 0); }) {
    all.push_back(limiter.try_acquire_up_to("k", 0, 0));
  }
  return all;
}

/// To an instant at which windows and lumps of all sizes here begin.
void align(VirtualClock& clock) {
  constexpr Word step = 20'000'000;
  clock.advance(Span{step - to_word(clock.now()) % step});
}

template <class Limiter>
void check_fits(const Limiter& limiter, Random& random, Word remaining) {
  const Decision before = limiter.peek("k", 1);
  for (const Decision& d : answers(limiter, random)) {
    CHECK(d.allowed);
    CHECK(d.remaining == remaining);
    CHECK(d.retry_after == 0s);
  }
  CHECK(limiter.peek("k", 1) == before);
}

/// Refused for exactly `wait`, in every form; granted ahead by who waits as long.
template <class Limiter>
void check_waits(const Limiter& limiter, VirtualClock& clock, Random& random, Span wait) {
  const auto refused = [&](Span hint) {
    for (const Decision& d : answers(limiter, random)) {
      CHECK_FALSE(d.allowed);
      CHECK(d.remaining == 0);
      CHECK(d.retry_after == hint);
    }
  };
  const Decision before = limiter.peek("k", 1);
  refused(wait);
  if constexpr (requires { limiter.reserve("k", 0, wait); }) {
    CHECK(limiter.reserve("k", 0, wait - 1us).retry_after == 1us);
    const Decision ahead = limiter.reserve("k", 0, wait);
    CHECK(ahead.allowed);
    CHECK(ahead.retry_after == wait);
  }
  if constexpr (requires { limiter.try_acquire_up_to("k", 5, 0); }) {
    CHECK(limiter.try_acquire_up_to("k", 5, 0).retry_after == wait);
  }
  CHECK(limiter.peek("k", 1) == before);
  clock.advance(wait - 1us);
  refused(1us);
  clock.advance(1us);
  for (const Decision& d : answers(limiter, random)) {
    CHECK(d.allowed);
    CHECK(d.retry_after == 0s);
  }
}

/// A limiter of 5 in ten seconds, or five and one a hundred milliseconds. `block`: how long a block
/// of a second holds for a cost of 0. `owed`: how long it takes until three are paid.
struct Times {
  Span block = 1s;
  Span owed;
};
template <class Limiter>
void check_all(const std::function<Limiter(const char*)>& make, VirtualClock& clock, Random& random,
               const Times& times) {
  {
    align(clock);
    const Limiter limiter = make("fresh");
    check_fits(limiter, random, 5);
    REQUIRE(limiter.try_acquire("k", 3));
    check_fits(limiter, random, 2);
    REQUIRE(limiter.try_acquire("k", 2));
    check_fits(limiter, random, 0);  // all spent, and nothing owed
  }
  {
    align(clock);
    const Limiter limiter = make("blocked");
    REQUIRE(limiter.try_acquire("k", 2));
    REQUIRE(limiter.block("k", 1s).allowed);
    check_waits(limiter, clock, random, times.block);
  }
  if constexpr (requires(const Limiter& l) { l.penalize("k", 8); }) {
    align(clock);
    const Limiter limiter = make("owes");
    REQUIRE(limiter.penalize("k", 8).allowed);
    check_waits(limiter, clock, random, times.owed);
  }
  if constexpr (requires(const Limiter& l) { l.reserve("k", 3, 30s); }) {
    align(clock);
    const Limiter limiter = make("promised");
    REQUIRE(limiter.try_acquire("k", 5));
    const Decision ahead = limiter.reserve("k", 3, 30s);
    REQUIRE(ahead.retry_after > 0s);
    check_waits(limiter, clock, random, ahead.retry_after);
  }
}

}  // namespace

TEST_CASE("a cost of 0 fits unless something is owed, blocked or promised, in every form",
          "[verbs][C-024]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    Random random("a cost of 0 fits unless something is owed, blocked or promised, in every form");
    const Quota quota = Quota::per_second(10).burst(5);
    check_all<TokenBucket>([&](const char* name) { return TokenBucket(store, name, quota); }, clock,
                           random, {.owed = 300ms});
    check_all<TokenBucket>(
        [&](const char* name) {
          return TokenBucket(store, std::string("longer ") + name, quota, {.longest = 2min});
        },
        clock, random, {.owed = 300ms});
    check_all<TokenBucket>(
        [&](const char* name) {
          return TokenBucket(store, std::string("lumps ") + name, quota,
                             {.refill = Refill::per_interval(500ms)});
        },
        clock, random, {.owed = 500ms});
    // In its last microsecond a block is a spent bucket here.
    check_all<SharedTokenBucket>(
        [&](const char* name) {
          SharedTokenBucket bucket(store, std::string("shared ") + name);
          bucket.configure("k", quota);
          return bucket;
        },
        clock, random, {.block = 1s - 1us, .owed = 300ms});
    check_all<SlidingWindow>(
        [&](const char* name) {
          return SlidingWindow(store, std::string("windows ") + name, {{5, 10s}, {8, 20s}});
        },
        clock, random, {.owed = 0s});
    // Of 8 in ten seconds 5 weigh 3.75 s after them.
    check_all<SlidingWindowCounter>(
        [&](const char* name) {
          return SlidingWindowCounter(store, std::string("counter ") + name, {5, 10s});
        },
        clock, random, {.owed = 13'750ms});
    check_all<FixedWindow>(
        [&](const char* name) {
          return FixedWindow(store, std::string("fixed ") + name, 5, Calendar::every(10s));
        },
        clock, random, {.owed = 10s});
    check_all<SharedSlidingWindow>(
        [&](const char* name) {
          SharedSlidingWindow rate(store, std::string("rate ") + name);
          rate.configure("k", RateType::overall, 5, 10s, SpentUnits::forgotten);
          return rate;
        },
        clock, random, {.owed = 0s});
  });
}

TEST_CASE("a bucket too large to tell a promise refuses a cost of 0 until that is covered",
          "[token_bucket][C-024]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    Random random("a bucket too large to tell a promise refuses a cost of 0 until it is covered");
    const Quota quota = Quota::per_second(7).burst(600'000);
    const TokenBucket bucket(store, "b", quota);
    REQUIRE(bucket.try_acquire("k", 600'000));
    check_fits(bucket, random, 0);
    REQUIRE(bucket.reserve("k", 1, 1s).wait() == 142'858us);
    check_waits(bucket, clock, random, 142'858us);
  });
}

TEST_CASE("in a plan a cost of 0 is a condition: refused, it is named, and nobody is charged",
          "[composing][C-024]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
    const SlidingWindow windows(store, "w", {{5, 10s}});
    const auto ask = [&] {
      return decide(store, std::array{windows.acquire_step("k", 2), bucket.acquire_step("k", 0)});
    };
    CHECK(ask().allowed);
    bucket.block("k", 1s);
    const Decision refused = ask();
    CHECK_FALSE(refused.allowed);
    CHECK(refused.step == 1);
    CHECK(refused.retry_after == 1s);
    CHECK(windows.peek("k").remaining == 3);
    clock.advance(1s);
    CHECK(ask().allowed);
  });
}
