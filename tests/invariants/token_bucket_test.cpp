// Histories of the token bucket. Threading: single-threaded.
#include "sluice/limiters/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

TEST_CASE("histories of the token bucket keep its bound, its hints and its pace on every store",
          "[invariants][token_bucket][S1][S5][L1][L2]") {
  Random random(
      "histories of the token bucket keep its bound, its hints and its pace on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    for (std::size_t i = 0; i < lives(); ++i) {
      const Word units = random.between(1, 1000);  // at most one in a microsecond: none is lost
      const RateBound bound{.burst = random.between(2, 20),
                            .units = units,
                            .period = Span{random.between(units, 1'000'000)}};
      const TokenBucket bucket(store, "b" + std::to_string(i),
                               Quota::per(bound.units, bound.period).burst(bound.burst));
      Habits habits;
      habits.most_cost = random.between(1, bound.burst - 1);
      const auto callers = static_cast<Word>(habits.callers);
      habits.most_thought = bound.period * callers * habits.most_cost / bound.units;
      const Asking one = asking(bucket, "one");
      const Life life = live(clock, random, habits, one);
      proven += check_life(life, bound.burst);
      check_kept(check_rate(life.history, bound));
      check_kept(check_work_conserving(
          life.history, {.burst = habits.most_cost, .units = bound.units, .period = bound.period}));
      const Asking two = asking(bucket, "two");
      const Asking three = asking(bucket, "three");
      check_kept(poll(clock, random, habits, two, three));
    }
    CHECK(proven > 0);
  });
}
