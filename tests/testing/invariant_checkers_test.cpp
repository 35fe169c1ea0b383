// The checkers themselves: each accepts a history that keeps its invariant to the last unit, and
// finds one planted fault. Threading: single-threaded.
#include <algorithm>

#include "sluice/testing/invariants.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;
using sluice::test::Random;

namespace {

constexpr Time start = VirtualClock::default_start;

Event granted(Span at, Word cost = 1) {
  return {.at = start + at, .cost = cost, .allowed = true, .effective = start + at};
}
Event refused(Span at, Span retry_after, Word cost = 1, std::size_t caller = 0) {
  return {.at = start + at,
          .cost = cost,
          .effective = start + at,
          .retry_after = retry_after,
          .caller = caller};
}

/// As much as a bucket of `burst` with 3 units in 7 us can give, each unit as early as can be.
History saturated(Word burst, Word count) {
  History history;
  for (Word i = 0; i < count; ++i) {
    const Word due = i < burst ? 0 : ((i - burst + 1) * 7 + 2) / 3;
    history.push_back(granted(Span{due}));
  }
  return history;
}

/// One more grant right after a random one.
History with_extra(History history, Random& random) {
  const auto at = random.between(0, static_cast<Word>(history.size()) - 1);
  const Event copy = history[static_cast<std::size_t>(at)];
  history.insert(history.begin() + at, copy);
  return history;
}

}  // namespace

TEST_CASE("the rate checker accepts all that fits, and finds one unit more as one unit",
          "[checkers][S1]") {
  Random random("the rate checker accepts all that fits, and finds one unit more as one unit");
  CAPTURE(random.repeat());
  const RateBound bound{.burst = 5, .units = 3, .period = 7us};
  const History full = saturated(5, 1000);
  CHECK_FALSE(check_rate(full, bound));
  CHECK_FALSE(check_rate({}, bound));
  CHECK(check_rate(full, {.burst = 4, .units = 3, .period = 7us})->excess == 1);
  for (int i = 0; i < 50; ++i) {
    const Checked checked = check_rate(with_extra(full, random), bound);
    REQUIRE(checked);
    INFO(checked->what);
    CHECK(checked->excess == 1);
    CHECK(checked->what.find("1 more than fit") != std::string::npos);
  }
  // Refusals and requests for nothing do not count; reserved grants count when they take effect.
  History asked = full;
  for (std::size_t i = 0; i < asked.size(); i += 3) asked[i].cost = 0;
  for (std::size_t i = 1; i < asked.size(); i += 3) asked[i].allowed = false;
  asked.insert(asked.end(), asked.begin(), asked.end());
  CHECK_FALSE(check_rate(asked, bound));
  History early = full;
  for (Event& event : early) event.at = start;
  std::ranges::reverse(early);
  CHECK_FALSE(check_rate(early, bound));
}

TEST_CASE("the rate checker is exact at the ends of the number range", "[checkers][S1]") {
  const RateBound bound{.burst = word_limit, .units = word_limit, .period = Span{word_limit}};
  History history{granted(0us, word_limit), granted(1us)};
  CHECK_FALSE(check_rate(history, bound));
  history.push_back(granted(1us));
  CHECK(check_rate(history, bound)->excess == 1);
}

TEST_CASE("the window checker knows the edge of a half-open window", "[checkers][S2]") {
  const History history{granted(0us, 2), granted(1us), granted(10us, 2)};
  CHECK_FALSE(check_window(history, 10us, 3));
  CHECK(check_window(history, 11us, 3)->excess == 2);
  CHECK(check_window(history, 10us, 2)->excess == 1);
  CHECK(check_window(History{granted(0us, 2), granted(9us, 2)}, 10us, 3)->excess == 1);
}

TEST_CASE("the checker of a changing rate takes the larger burst and rate over a change",
          "[checkers][S1]") {
  const RateBound small{.burst = 3, .units = 1, .period = 10us};
  const RateBound large{.burst = 5, .units = 1, .period = 20us};
  const auto broken = [&](const History& history) {
    return check_changing_rate(history,
                               std::vector<RateFrom>{{start, small}, {start + 100us, large}});
  };
  // Over the change 5 at once, and one more each 10 us; afterwards one each 20 us.
  CHECK_FALSE(broken({granted(0us, 3), granted(90us, 3), granted(100us, 3), granted(120us, 1)}));
  CHECK(broken({granted(0us, 4)})->excess == 1);
  CHECK(broken({granted(90us, 3), granted(101us, 5)})->excess == 2);
  CHECK_FALSE(broken({granted(110us, 5), granted(130us)}));
  CHECK(broken({granted(110us, 5), granted(120us)})->excess == 1);
  CHECK_FALSE(broken({granted(100us, 5), granted(110us)}));  // the first under either
}

TEST_CASE("the checker of a changing window takes the larger quota over a change",
          "[checkers][S2]") {
  const auto broken = [&](const History& history) {
    return check_changing_window(
        history, std::vector<WindowFrom>{{start, 55us, 17}, {start + 10us, 33us, 8}});
  };
  CHECK_FALSE(broken({granted(0us, 17), granted(55us, 8), granted(88us, 8)}));
  CHECK(broken({granted(0us, 17), granted(43us, 8)})->excess == 8);  // 17 in 55 us, or twice 8
  CHECK(broken({granted(0us, 18)})->excess == 1);
  CHECK(broken({granted(0us, 17), granted(54us, 1)})->excess == 1);
  CHECK(broken({granted(55us, 8), granted(87us)})->excess == 1);
  CHECK_FALSE(
      check_changing_window(History{granted(0us, 8), granted(54us, 10)},
                            std::vector<WindowFrom>{{start, 55us, 8}, {start + 1us, 33us, 10}}));
  // Of three quotas in one window, one more of its windows may have begun.
  const std::vector<WindowFrom> three{
      {start, 10us, 2}, {start + 5us, 10us, 2}, {start + 7us, 10us, 2}};
  CHECK_FALSE(check_changing_window(History{granted(0us, 2), granted(8us, 2)}, three));
  CHECK(check_changing_window(History{granted(0us, 2), granted(8us, 3)}, three)->excess == 1);
}

TEST_CASE("the checker of aligned windows counts from edge to edge", "[checkers][S2]") {
  const std::vector<Time> edges{start, start + 10us, start + 25us};
  History history{granted(0us, 3), granted(9us), granted(10us, 4), granted(24us, 0)};
  CHECK_FALSE(check_aligned(history, edges, 4));
  history.push_back(granted(24us));
  CHECK(check_aligned(history, edges, 4)->excess == 1);
  history.back().allowed = false;
  CHECK_FALSE(check_aligned(history, edges, 4));
  CHECK(check_aligned(History{granted(25us)}, edges, 4));
  CHECK(check_aligned(History{granted(-1us)}, edges, 4));
}

TEST_CASE("the lease checker sees weights, ends, renewals and fences", "[checkers][S3]") {
  using enum LeaseRecord::Act;
  const auto acquire = [](Span at, std::uint64_t lease, Word weight, Span ttl, Word fence) {
    return LeaseRecord{start + at, acquired, lease, weight, start + at + ttl, fence};
  };
  const std::vector<LeaseRecord> good{
      acquire(0us, 1, 2, 10us, 1),
      acquire(0us, 2, 1, 20us, 2),
      {start + 9us, renewed, 1, 0, start + 30us, 0},
      acquire(20us, 3, 1, 5us, 5),  // at the end of lease 2, not after it
      {start + 20us, released, 2},  // late: it has ended by itself
      {start + 21us, released, 1},
      acquire(21us, 4, 2, 5us, 6),
  };
  CHECK_FALSE(check_leases(good, 3));
  CHECK(check_leases(good, 2)->excess == 1);
  const auto with = [&](std::size_t index, const auto& change) {
    auto bad = good;
    change(bad[index]);
    return check_leases(bad, 3);
  };
  CHECK_FALSE(with(1, [](LeaseRecord& e) { e.share = 3; }));
  CHECK(with(1, [](LeaseRecord& e) { e.share = 2; })->excess == 1);
  CHECK(with(3, [](LeaseRecord& e) { e.at -= 1us; })->excess == 1);
  CHECK(with(5, [](LeaseRecord& e) { e.lease = 9; })->excess == 2);
  CHECK(with(3, [](LeaseRecord& e) { e.fence = 2; }));
  CHECK(with(6, [](LeaseRecord& e) { e.fence = 4; }));
  CHECK(with(2, [](LeaseRecord& e) { e.at += 1us; })->what.find("after its end") !=
        std::string::npos);
}

TEST_CASE("the gap checker accepts the gap and finds a microsecond less", "[checkers][S4]") {
  History history;
  for (int i = 0; i < 100; ++i) history.push_back(granted(i * 50us));
  CHECK_FALSE(check_gaps(history, 50us));
  CHECK(check_gaps(history, 51us)->excess == 1);
  history[40].effective += 1us;
  CHECK(check_gaps(history, 50us)->excess == 1);
  history[40].allowed = false;
  CHECK_FALSE(check_gaps(history, 50us));
}

TEST_CASE("the checker of refusals sees what one of them changed", "[checkers][S5]") {
  Decision seen;
  seen.remaining = 4;
  std::vector<Looked> history(3, {seen, Decision{}, seen});
  CHECK_FALSE(check_refusals(history));
  history[1].after.remaining = 3;
  CHECK(check_refusals(history)->excess == 1);
  history[1].answer.allowed = true;
  CHECK_FALSE(check_refusals(history));
  history[2].after.reset_after = 1us;
  CHECK(check_refusals(history));
}

TEST_CASE("the checker of answers sees a swapped and a repeated one", "[checkers][S6]") {
  CHECK_FALSE(check_answers(std::vector<Matched>{{1, 1}, {3, 3}, {2, 2}}));
  CHECK(check_answers(std::vector<Matched>{{1, 1}, {3, 2}, {2, 3}})->what ==
        "request 3 got the answer of 2");
  CHECK(check_answers(std::vector<Matched>{{1, 1}, {1, 1}}));
}

TEST_CASE("what remains is within zero and the limit", "[checkers]") {
  History history{granted(0us), granted(1us)};
  history[0].remaining = 5;
  CHECK_FALSE(check_remaining(history, 5));
  CHECK(check_remaining(history, 4)->excess == 1);
  history[1].remaining = -2;
  CHECK(check_remaining(history, 5)->excess == 2);
}

TEST_CASE("the hint checker accepts exact hints and finds each way to miss one", "[checkers][L1]") {
  const History good{granted(0us),           refused(1us, 9us),  refused(4us, 6us),
                     refused(9us, 1us),      granted(10us),      refused(10us, 10us),
                     refused(11us, 20us, 2), refused(19us, 1us), granted(20us)};
  std::size_t proven = 0;
  CHECK_FALSE(check_hints(good, &proven));
  CHECK(proven == 4);
  const auto with = [&](std::size_t index, const auto& change) {
    History bad = good;
    change(bad[index]);
    return check_hints(bad);
  };
  CHECK(with(3, [](Event& e) { e.allowed = true; })->excess == 1);  // too long a hint
  CHECK(with(4, [](Event& e) {
          e.allowed = false;
          e.retry_after = 1us;
        })->excess == 1);
  CHECK(with(2, [](Event& e) { e.retry_after = 7us; })->excess == 1);  // it moved
  CHECK(with(1, [](Event& e) { e.retry_after = 0us; }));               // none at all
  CHECK(check_hints(History{refused(0us, 0us)})->what.ends_with("without a hint"));
  // A grant in between ends the promise.
  CHECK_FALSE(check_hints(History{refused(0us, 5us), granted(1us, 0), refused(5us, 3us)}));
}

TEST_CASE("the checker of idling accepts a bucket that is drained, and finds a lost unit",
          "[checkers][L2]") {
  // One unit in 10 us; caller 0 always waits, caller 1 comes and takes now and then.
  History history{granted(0us)};
  for (int i = 1; i <= 50; ++i) {
    history.push_back(refused(i * 10us - 9us, 9us));
    history.push_back(refused(i * 10us - 5us, 5us, 1, 1));
    history.push_back(granted(i * 10us));
    history.back().caller = i % 3 == 0 ? 1 : 0;
    history.push_back(refused(i * 10us, 10us, 1, i % 3 == 0 ? 1 : 0));
  }
  const RateBound bound{.burst = 1, .units = 1, .period = 10us};
  CHECK_FALSE(check_work_conserving(history, bound));
  History bad = history;
  bad[87].allowed = false;
  CHECK(check_work_conserving(bad, bound)->excess == 1);
  // While nobody waits, nothing need be granted.
  CHECK_FALSE(check_work_conserving(History{granted(0us), granted(1000us)}, bound));
  CHECK_FALSE(check_work_conserving(
      History{refused(0us, 10us), granted(10us), refused(1000us, 10us), granted(1010us)}, bound));
}

TEST_CASE("two histories differ by what was granted, not by what was refused", "[checkers]") {
  const History a{granted(0us), refused(1us, 9us), granted(10us, 2)};
  History b{refused(0us, 1us), granted(0us), granted(10us, 2), granted(11us, 0)};
  CHECK_FALSE(check_same_grants(a, b));
  b.push_back(granted(12us));
  CHECK(check_same_grants(a, b)->what.find("grant 2 is nothing in one") == 0);
  b.pop_back();
  b[2].effective += 1us;
  CHECK(check_same_grants(a, b));
}
