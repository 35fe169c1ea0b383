// The checkers of calls that wait: each accepts a history that keeps its promise to the tick, and
// finds one planted fault. Threading: single-threaded.
#include "sluice/testing/invariants.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

constexpr Time start = VirtualClock::default_start;

Wait waited(Span began, Span ended, Wait::End end = Wait::End::granted) {
  return {.began = start + began, .ended = start + ended, .end = end, .completions = 1};
}

LeaseRecord acquired(Span at, std::uint64_t lease, Span until, Word weight = 1) {
  return {.at = start + at, .lease = lease, .weight = weight, .until = start + until};
}
LeaseRecord released(Span at, std::uint64_t lease) {
  return {.at = start + at, .act = LeaseRecord::Act::released, .lease = lease};
}

}  // namespace

TEST_CASE("the checker of ends finds a wait that is told twice, never, or a tick late",
          "[checkers][L3]") {
  std::vector<Wait> waits{waited(0s, 5s), waited(1s, 3s, Wait::End::refused), waited(4s, 4s)};
  waits[1].deadline = start + 3s;
  waits[2].deadline = start + 1s;  // in the past: it is told at once
  CHECK_FALSE(check_waits_end(waits));
  waits[1].ended += 1us;
  CHECK(check_waits_end(waits)->excess == 1);
  CHECK_FALSE(check_waits_end(waits, 1us));
  waits[1].ended -= 1us;
  for (const int completions : {0, 2}) {
    waits[0].completions = completions;
    CHECK(check_waits_end(waits));
  }
  waits[0] = {.began = start};
  CHECK(check_waits_end(waits));
}

TEST_CASE("the checker of order counts who overtakes, of equal priority and flow",
          "[checkers][L5]") {
  const std::vector<Wait> fifo{waited(0s, 5s), waited(1s, 5s), waited(2s, 6s), waited(2s, 7s)};
  CHECK_FALSE(check_order(fifo));
  CHECK_FALSE(check_order({}));
  auto waits = fifo;
  waits[3].ended = waits[2].ended - 1us;
  CHECK(check_order(waits)->excess == 1);
  CHECK_FALSE(check_order(waits, 1));
  waits[3].priority = 1;
  CHECK_FALSE(check_order(waits));
  waits[3].priority = 0;
  waits[3].flow = 1;
  CHECK_FALSE(check_order(waits));
  // Who gives up was overtaken, too, and overtakes nobody.
  waits = fifo;
  waits[0] = waited(0s, 7s + 1us, Wait::End::cancelled);
  CHECK(check_order(waits)->excess == 3);
  waits[0] = waited(0s, 1s, Wait::End::refused);
  waits[3] = waited(2s, 2s, Wait::End::refused);
  CHECK_FALSE(check_order(waits));
}

TEST_CASE("the checker of lines finds a second that was not used while somebody waited",
          "[checkers][L2]") {
  const RateBound bound{.burst = 1, .units = 1, .period = 1s};
  std::vector<Wait> waits;
  for (int i = 0; i < 20; ++i) waits.push_back(waited(0s, (i + 1) * 1s));
  CHECK_FALSE(check_waits_served(waits, bound));
  for (int i = 10; i < 20; ++i) waits[static_cast<std::size_t>(i)].ended += 1s;
  CHECK(check_waits_served(waits, bound)->excess == 1);
  // Nobody waited then: the ten that came later are served in time.
  for (int i = 10; i < 20; ++i) waits[static_cast<std::size_t>(i)].began = start + 11s + 500ms;
  CHECK_FALSE(check_waits_served(waits, bound));
  // Who was cancelled waited, and took nothing.
  waits.push_back(waited(10s, 12s, Wait::End::cancelled));
  CHECK(check_waits_served(waits, bound));
}

TEST_CASE("the checker of recovery looks at what comes after the fault and its time of grace",
          "[checkers][L6]") {
  const RateBound bound{.burst = 1, .units = 1, .period = 1s};
  std::vector<Wait> waits;
  for (int i = 0; i < 10; ++i) waits.push_back(waited(0s, (i + 1) * 1s));
  for (int i = 0; i < 10; ++i)
    waits.push_back(waited(0s, (i + 31) * 1s));  // down from 10 s to 30 s
  CHECK(check_waits_served(waits, bound));
  CHECK_FALSE(check_recovery(waits, start + 30s, 1s, bound));
  CHECK(check_recovery(waits, start + 20s, 1s, bound));
  for (auto wait = waits.begin() + 10; wait != waits.end(); ++wait) wait->ended += 2s;
  CHECK(check_recovery(waits, start + 30s, 1s, bound)->excess == 1);
}

TEST_CASE("the checker of places finds one that stays empty while the first in line would fit",
          "[checkers][L4]") {
  // One place of two: a is released at 3 s, b's holder has vanished, and its time is over at 10 s.
  const std::vector<LeaseRecord> leases{acquired(0s, 1, 10s), acquired(0s, 2, 10s), released(3s, 1),
                                        acquired(3s, 3, 20s), acquired(10s, 4, 20s)};
  const std::vector<Wait> waits{waited(1s, 3s), waited(2s, 10s)};
  CHECK_FALSE(check_places(waits, leases, 2));
  CHECK(check_places(waits, leases, 3)->excess == Word{1'000'000});
  auto late = leases;
  late[4].at += 1us;
  auto late_waits = waits;
  late_waits[1].ended += 1us;
  CHECK(check_places(late_waits, late, 2)->excess == 1);
  CHECK_FALSE(check_places(late_waits, late, 2, 1us));
  // A big one in front may wait for both places; the small one behind it waits with it.
  std::vector<Wait> big{waited(1s, 20s), waited(2s, 20s)};
  big[0].cost = 2;
  const std::vector<LeaseRecord> held{acquired(0s, 1, 20s), acquired(20s, 2, 30s, 2)};
  CHECK_FALSE(check_places(big, held, 2));
  std::swap(big[0].cost, big[1].cost);
  CHECK(check_places(big, held, 2));
}
