// Histories of the limits that live in the store, under quotas that change while they are in use.
// Threading: single-threaded.
#include "sluice/limiters/shared_sliding_window.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

/// Quotas, and what they were when.
struct BucketQuotas {
  Random& random;
  VirtualClock& clock;
  Word least;  // below the burst, so that the rest of a microsecond is not lost
  std::vector<RateFrom> all{};

  Quota draw() {
    const Word units =
        random.between(1, 1000);  // at most one in a microsecond, so that none is lost
    const RateBound bound{.burst = random.between(least + 1, 20),
                          .units = units,
                          .period = Span{random.between(units, 100'000)}};
    all.push_back({clock.now(), bound});
    return Quota::per(bound.units, bound.period).burst(bound.burst);
  }
};

struct WindowQuotas {
  Random& random;
  VirtualClock& clock;
  Word least;  // rate
  std::vector<WindowFrom> all{};

  const WindowFrom& draw() {
    all.push_back({clock.now(), Span{random.between(10, 100'000)}, random.between(least, 20)});
    return all.back();
  }
};

Asking asking(const SharedSlidingWindow& limiter) {
  return {[&](Word cost) { return limiter.try_acquire(cost); },
          [&](Word cost) { return limiter.peek(cost); }};
}

}  // namespace

TEST_CASE("histories of shared token buckets keep the larger quota, hints and pace on every store",
          "[invariants][shared_token_bucket][S1][S5][L1][L2]") {
  Random random(
      "histories of shared token buckets keep the larger quota, hints and pace on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    for (std::size_t i = 0; i < lives(); ++i) {
      const SharedTokenBucket bucket(store, "b" + std::to_string(i));
      Habits habits;
      habits.most_cost = random.between(1, 10);
      BucketQuotas quotas{random, clock, habits.most_cost};
      bucket.configure("one", quotas.draw());
      const RateBound first = quotas.all.front().bound;
      const bool changes = i % 2 == 0;
      habits.most_thought =
          first.period * static_cast<Word>(habits.callers) * habits.most_cost / first.units;
      Asking one = asking(bucket, "one");
      one.meanwhile = [&] {
        if (!changes || !random.one_in(20)) return false;
        bucket.configure("one", quotas.draw(), static_cast<Inheritance>(random.below(4)));
        return true;
      };
      const Life life = live(clock, random, habits, one);
      proven += check_life(life, 20);
      check_kept(check_changing_rate(life.history, quotas.all));
      if (!changes) {
        check_kept(check_work_conserving(
            life.history,
            {.burst = habits.most_cost, .units = first.units, .period = first.period}));
      }
      const Quota quota = quotas.draw();
      for (const char* key : {"two", "three"}) bucket.configure(key, quota);
      check_kept(poll(clock, random, habits, asking(bucket, "two"), asking(bucket, "three")));
    }
    CHECK(proven > 0);
  });
}

TEST_CASE(
    "histories of shared sliding windows keep the larger quota, hints and pace on every store",
    "[invariants][shared_sliding_window][S2][S5][L1][L2]") {
  Random random(
      "histories of shared sliding windows keep the larger quota, hints and pace on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    for (std::size_t i = 0; i < 2 * lives(); ++i) {
      const std::string name = std::to_string(i);
      const SharedSlidingWindow here(store, "one", name);
      const SharedSlidingWindow there(store, "one", name);
      Habits habits;
      habits.most_cost = random.between(1, 5);
      WindowQuotas quotas{random, clock, habits.most_cost};
      const WindowFrom first = quotas.draw();
      here.configure(RateType::overall, first.limit, first.length, SpentPermits::forgotten);
      const bool changes = i % 4 != 0;
      habits.most_thought =
          first.length * static_cast<Word>(habits.callers) * habits.most_cost / first.limit;
      Asking one = asking(here);
      one.meanwhile = [&] {
        if (!changes || !random.one_in(15)) return false;
        const WindowFrom next = quotas.draw();
        there.configure(RateType::overall, next.limit, next.length);
        return true;
      };
      const Life life = live(clock, random, habits, one);
      proven += check_life(life, 20);
      check_kept(check_changing_window(life.history, quotas.all));
      if (!changes && habits.most_cost == 1) {
        check_kept(check_work_conserving(
            life.history, {.burst = first.limit, .units = first.limit, .period = first.length}));
      }
      const SharedSlidingWindow two(store, "two", name);
      const SharedSlidingWindow three(store, "three", name);
      const WindowFrom last = quotas.draw();
      for (const SharedSlidingWindow* limiter : {&two, &three}) {
        limiter->configure(RateType::overall, last.limit, last.length, SpentPermits::forgotten);
      }
      check_kept(poll(clock, random, habits, asking(two), asking(three)));
    }
    CHECK(proven > 0);
  });
}
