// What is taken ahead of need, how long it is held, what goes back. Threading: single-threaded.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/prefetch/rig.hpp"

namespace sluice::test {
namespace {

const Quota thousand = Quota::per_second(1000).burst(1000);

}  // namespace

TEST_CASE("a busy key is decided with few trips", "[prefetch]") {
  PrefetchRig rig({.hold = 1s, .most = 200});
  const TokenBucket bucket(rig.store, "api", thousand);
  CHECK(rig.spend(bucket, 2000, 2ms) == 2000);
  const std::uint64_t trips = rig.asked();
  CAPTURE(trips);
  CHECK(trips <= 40);
  CHECK(bucket.try_acquire("a").source == Source::prefetched);
  const PrefetchStats stats = rig.store.stats();
  CHECK(stats.taken >= 2001);
  CHECK(stats.local >= 1950);
}

TEST_CASE("a request for all there is takes what is held, and asks for the rest", "[prefetch]") {
  PrefetchRig rig({.hold = 10s, .most = 100});
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  const TokenBucket plain(*rig.whole, "api", Quota::per_hour(1).burst(1000));
  CHECK(rig.spend(bucket, 64, 1ms) == 64);
  const Word left = plain.peek("a").remaining;
  REQUIRE(left < 1000 - 64);
  CHECK(bucket.try_acquire("a", 1000 - 64).allowed);
  CHECK(plain.peek("a").remaining == 0);
}

TEST_CASE("a forked child spends nothing of what its parent holds", "[prefetch][realtime]") {
  PrefetchRig rig({.hold = 10s, .most = 100});
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  const BoundTokenBucket bound = bucket.at("a");
  CHECK(rig.spend(bucket, 64, 1ms) == 64);
  CHECK(bound.try_acquire().source == Source::prefetched);  // has a credit from now on
  REQUIRE(rig.store.stats().taken > 65);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto is_asked = [](const Decision& d) {
      return d.allowed && d.source == Source::virtual_store;
    };
    ::_exit(is_asked(bucket.try_acquire("a")) && is_asked(bound.try_acquire()) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(bucket.try_acquire("a").source == Source::prefetched);
}

TEST_CASE("keys beyond max_keys are decided by the store", "[prefetch]") {
  PrefetchRig rig({.hold = 10s, .max_keys = 1});
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  for (int key = 0; key < 1000; ++key) CHECK(bucket.try_acquire(key).allowed);
  CHECK(rig.store.stats().passed_on >= 900);
  // Once idle, they make room for others.
  rig.clock.advance(1min);
  CHECK(bucket.try_acquire("new").source == Source::prefetched);
}

TEST_CASE("options out of range are named", "[prefetch]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  CHECK_THROWS_WITH(PrefetchStore(*store, {.hold = Span{0}}),
                    "PrefetchStore: hold must be 1 us to 3600000000 us, got 0 us");
  CHECK_THROWS_AS(PrefetchStore(*store, {.hold = 1h + Span{1}}), std::invalid_argument);
  CHECK_THROWS_AS(PrefetchStore(*store, {.most = 0}), std::invalid_argument);
  CHECK_THROWS_AS(PrefetchStore(*store, {.recheck = Span{0}}), std::invalid_argument);
  CHECK_THROWS_AS(PrefetchStore(*store, {.max_keys = 0}), std::invalid_argument);
  CHECK_NOTHROW(PrefetchStore(*store, {.hold = 1h}));
}

}  // namespace sluice::test
