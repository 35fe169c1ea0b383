// A store with a lagging replica, against a plain one. Threading: single-threaded.
#include "sluice/sim/replicated_store.hpp"
#include "sluice/extend/subscription.hpp"

#include <array>
#include <stdexcept>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

/// Several limiters on one store.
struct Limits {
  TokenBucket bucket;
  SlidingWindow window;
  SlidingWindowCounter counter;
  FixedWindow fixed;

  explicit Limits(Store& store)
      : bucket(store, "bucket", Quota::per_second(20).burst(10)),
        window(store, "window", std::vector{WindowLimit{8, 1s}}),
        counter(store, "counter", WindowLimit{9, 2s}),
        fixed(store, "fixed", 7, Calendar::every(1s)) {}
};

/// A plan's place among the limiters, its key and its cost.
struct Choice {
  int limiter = 0;
  std::string key;
  Word cost = 1;
};

Choice draw(test::Random& random) {
  return {static_cast<int>(random.between(0, 3)), random.one_in(2) ? "a" : "b",
          random.between(1, 3)};
}

Decision ask(const Limits& limits, const Choice& choice) {
  switch (choice.limiter) {
    case 0:
      return limits.bucket.try_acquire(choice.key, choice.cost);
    case 1:
      return limits.window.try_acquire(choice.key, choice.cost);
    case 2:
      return limits.counter.try_acquire(choice.key, choice.cost);
    default:
      return limits.fixed.try_acquire(choice.key, choice.cost);
  }
}

void check_same(const Decision& a, const Decision& b) {
  REQUIRE(a.allowed == b.allowed);
  REQUIRE(a.remaining == b.remaining);
  REQUIRE(a.retry_after == b.retry_after);
  REQUIRE(a.at == b.at);
}

}  // namespace

TEST_CASE("without a failover it decides as a plain store does") {
  test::Random random("without a failover it decides as a plain store does");
  CAPTURE(random.repeat());
  VirtualClock clock;
  ReplicatedStore replicated(clock, 100ms, 2);
  const auto plain = make_virtual_store(clock);
  const Limits ours(replicated);
  const Limits theirs(*plain);
  for (std::size_t i = 0; i < test::scaled(5'000); ++i) {
    const Choice choice = draw(random);
    CAPTURE(i, choice.limiter);
    check_same(ask(ours, choice), ask(theirs, choice));
    clock.advance(Span{random.between(0, 60'000)});
  }
}

TEST_CASE("after a failover it knows only the plans that are older than the lag") {
  test::Random random("after a failover it knows only the plans that are older than the lag");
  CAPTURE(random.repeat());
  for (std::size_t round = 0; round < test::scaled(100); ++round) {
    struct Asked {
      Time at;
      Choice choice;
    };
    const Span lag = 1ms * random.between(0, 200);  // often, a plan is exactly so old
    VirtualClock clock;
    ReplicatedStore replicated(clock, lag, 2);
    const Limits ours(replicated);
    std::vector<Asked> known;  // what has reached the replicas, or will
    for (int life = 0; life < 3; ++life) {
      for (int i = 0; i < 60; ++i) {
        known.push_back({clock.now(), draw(random)});
        (void)ask(ours, known.back().choice);
        clock.advance(1ms * random.between(0, 20));
      }
      if (life == 2) break;
      const std::size_t before = known.size();
      const Time end = clock.now() - lag;
      std::erase_if(known, [end](const Asked& asked) { return asked.at > end; });
      REQUIRE(replicated.unreplicated() == before - known.size());
      replicated.fail_over();
      REQUIRE(replicated.writes() == known.size());
    }
    VirtualClock replay;
    const auto plain = make_virtual_store(replay);
    const Limits theirs(*plain);
    for (const auto& [at, choice] : known) {
      replay.set(at);
      (void)ask(theirs, choice);
    }
    replay.set(clock.now());
    for (int i = 0; i < 40; ++i) {
      const Choice choice = draw(random);
      check_same(ask(ours, choice), ask(theirs, choice));
      const Span pause{random.between(0, 60'000)};
      clock.advance(pause);
      replay.advance(pause);
    }
  }
}

TEST_CASE("lose_all() forgets everything") {
  VirtualClock clock;
  ReplicatedStore store(clock, 100ms, 2);
  const TokenBucket bucket(store, "api", Quota::per_second(1).burst(3));
  CHECK(bucket.try_acquire("a", 3).allowed);
  clock.advance(200ms);
  CHECK(store.writes() == 1);
  CHECK(store.unreplicated() == 0);
  store.lose_all();
  CHECK(store.writes() == 0);
  CHECK(bucket.try_acquire("a", 3).allowed);
  // The replica that is left is as empty as the new primary was.
  store.fail_over();
  CHECK(bucket.try_acquire("a", 3).allowed);
}

TEST_CASE("without a replica there is nothing to fail over to") {
  VirtualClock clock;
  ReplicatedStore store(clock, 100ms, 1);
  const TokenBucket bucket(store, "api", Quota::per_second(1).burst(3));
  CHECK(bucket.try_acquire("a", 1).allowed);
  store.fail_over();
  CHECK_THROWS_AS(store.fail_over(), std::logic_error);
  CHECK_THROWS_AS(store.lose_all(), std::logic_error);
  CHECK(bucket.try_acquire("a", 3).allowed);
  CHECK_FALSE(bucket.try_acquire("a", 1).allowed);
}

TEST_CASE("wake-ups reach who watches, also after a failover") {
  VirtualClock clock;
  ReplicatedStore store(clock, 100ms);
  int heard = 0;
  const auto watch = store.subscribe(Key{"a", "x"}, [&heard] { ++heard; });
  store.notify(Key{"a", "x"});
  store.fail_over();
  store.notify(Key{"a", "x"});
  store.notify(Key{"a", "y"});
  CHECK(heard == 2);
}
