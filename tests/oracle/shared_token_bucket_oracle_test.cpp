// The shared token bucket while its quota changes at random: every interval of the list of grants
// is judged by the largest burst and the largest rate that were in force in it. Threading:
// single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using sluice::test::Random;
using sluice::test::scaled;

namespace {

struct Rate {
  Word per_second;
  Word burst;
};
struct Event {
  Word at;
  Word cost;  // 0: the quota changed
  Rate rate;  // in force from here on
};

/// Units granted in the worst interval beyond what it may hold, in millionths; 0 or less: none.
Word worst_excess(const std::vector<Event>& events) {
  Word worst = -word_limit;
  for (std::size_t from = 0; from < events.size(); ++from) {
    Rate most = events[from].rate;
    Word sum = 0;
    for (std::size_t to = from; to < events.size(); ++to) {
      most.per_second = std::max(most.per_second, events[to].rate.per_second);
      most.burst = std::max(most.burst, events[to].rate.burst);
      sum += events[to].cost;
      worst = std::max(worst, (sum - most.burst) * 1'000'000 -
                                  (events[to].at - events[from].at) * most.per_second);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("however often a quota changes, no interval holds more than the largest in force",
          "[oracle][shared_token_bucket][S1]") {
  Random random("however often a quota changes, no interval holds more than the largest in force");
  CAPTURE(random.repeat());
  std::size_t grants = 0;
  std::size_t changes = 0;
  const std::size_t histories = scaled(600);
  for (std::size_t history = 0; history < histories; ++history) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const SharedTokenBucket bucket(*store, "b");
    const Key key{"k", ""};
    std::vector<Event> events;
    const auto set = [&](bool first) {
      const Rate rate{random.between(1, 50), random.between(1, random.one_in(2) ? 10 : 100)};
      const Quota quota = Quota::per_second(rate.per_second).burst(rate.burst);
      const auto how = static_cast<Inheritance>(random.between(0, 3));
      const auto change =
          first ? bucket.try_configure(key, quota) : bucket.configure(key, quota, how);
      if (!change.changed) FAIL("not changed");
      events.push_back({to_word(clock.now()), 0, rate});
    };
    set(true);
    for (int i = 0; i < 100; ++i) {
      if (random.one_in(8)) {
        set(false);
        ++changes;
      } else {
        const Rate now = events.back().rate;
        const Word cost = random.between(1, random.one_in(3) ? now.burst : 1);
        const Decision d = bucket.try_acquire(key, cost);
        if (d.limit != now.burst) FAIL("decided by another quota");
        if (d.allowed) {
          events.push_back({to_word(clock.now()), cost, now});
          ++grants;
        } else if (random.one_in(2)) {  // the hint is exact
          clock.advance(d.retry_after - Span{1});
          if (bucket.peek(key, cost).retry_after != Span{1}) FAIL("the hint is not exact");
          clock.advance(Span{1});
          if (!bucket.peek(key, cost).allowed) FAIL("the hint is too early");
        }
      }
      if (random.one_in(2)) clock.advance(Span{random.between(0, 400'000)});
    }
    if (worst_excess(events) > 0) FAIL("an interval holds " << worst_excess(events) << " too much");
  }
  CHECK(grants > histories * 10);
  CHECK(changes > histories * 5);
}

TEST_CASE("a burst that is granted twice is found by the judge of intervals",
          "[oracle][shared_token_bucket][S1]") {
  const Rate rate{10, 5};
  CHECK(worst_excess({{0, 0, rate}, {0, 5, rate}, {100'000, 1, rate}}) == 0);
  CHECK(worst_excess({{0, 0, rate}, {0, 5, rate}, {99'999, 1, rate}}) == 10);
  CHECK(worst_excess({{0, 5, rate}, {0, 0, {10, 7}}, {0, 2, {10, 7}}}) == 0);
  CHECK(worst_excess({{0, 5, rate}, {0, 0, {10, 7}}, {0, 3, {10, 7}}}) == 1'000'000);
}
