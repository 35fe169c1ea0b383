// The order of the queue and of events, cancellation and the clock. Threading: single-threaded.
#include "sluice/sim/timeline.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sluice/sim/event_queue.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

struct Recorder {
  Timeline* timeline;
  std::vector<std::pair<Word, std::uint64_t>> seen;

  void note(std::uint64_t value) { seen.emplace_back(to_word(timeline->now()), value); }
};

struct World {
  VirtualClock clock{to_time(1'000)};
  Timeline timeline{clock};
  Recorder recorder{&timeline, {}};
};

}  // namespace

TEST_CASE("an event at the end of a run belongs to it, one microsecond later does not") {
  World w;
  w.timeline.after<&Recorder::note>(100us, w.recorder, 1);
  w.timeline.after<&Recorder::note>(101us, w.recorder, 2);
  w.timeline.run_until(w.clock.now() + 100us);
  CHECK(w.recorder.seen.size() == 1);
  CHECK(w.timeline.pending() == 1);
  CHECK(w.timeline.step());
  CHECK(w.recorder.seen.back() == std::pair<Word, std::uint64_t>{1'101, 2});
  CHECK_FALSE(w.timeline.step());
}

TEST_CASE("an event in the past or beyond 2^52 us is refused and changes nothing") {
  World w;
  CHECK_THROWS_AS(w.timeline.at<&Recorder::note>(to_time(999), w.recorder), std::out_of_range);
  CHECK_THROWS_AS(w.timeline.at<&Recorder::note>(to_time(word_limit + 1), w.recorder),
                  std::out_of_range);
  CHECK_THROWS_AS(w.timeline.run_until(to_time(999)), std::out_of_range);
  CHECK(w.timeline.pending() == 0);
  CHECK_FALSE(w.timeline.step());
  CHECK_FALSE(w.timeline.cancel(Timeline::Timer{}));
}

TEST_CASE("what an event throws comes out of the run, and the run can go on") {
  World w;
  w.timeline.after(
      10us, [](void*, std::uint64_t) { throw std::runtime_error("stop"); }, nullptr);
  w.timeline.after<&Recorder::note>(20us, w.recorder, 1);
  CHECK_THROWS_AS(w.timeline.run_until(to_time(5'000)), std::runtime_error);
  CHECK(w.timeline.now() == to_time(1'010));
  w.timeline.run_until(to_time(5'000));
  CHECK(w.recorder.seen.size() == 1);
}

namespace {

/// Schedules itself again, at once or after `pause`.
struct Repeater {
  Timeline* timeline;
  Span pause{0};
  bool posts = false;
  std::uint64_t left = ~std::uint64_t{0};
  std::uint64_t ran = 0;

  void repeat(std::uint64_t) {
    ++ran;
    if (--left == 0) return;
    if (posts) {
      timeline->post(&Repeater::again, this);
    } else {
      timeline->after<&Repeater::repeat>(pause, *this);
    }
  }
  static void again(void* self, std::uint64_t) { static_cast<Repeater*>(self)->repeat(0); }
};

}  // namespace

TEST_CASE("an instant without end is told with its time and its number of events") {
  const auto [posts, shuffled] =
      GENERATE(table<bool, bool>({{false, false}, {true, false}, {false, true}, {true, true}}));
  World w;
  if (shuffled) w.timeline.shuffle_ties(1);
  w.timeline.limit_instant(500);
  Repeater repeater{&w.timeline, 0us, posts};
  w.timeline.after<&Recorder::note>(3us, w.recorder, 1);
  w.timeline.after<&Repeater::repeat>(7us, repeater);
  w.timeline.after<&Recorder::note>(9us, w.recorder, 2);
  // Twice: what is continued runs as many again.
  for (std::uint64_t round = 1; round <= 2; ++round) {
    try {
      w.timeline.run_until(w.clock.now() + 1s);
      FAIL("it came to its end");
    } catch (const EndlessInstant& instant) {
      CHECK(instant.at() == to_time(1'007));
      CHECK(instant.events() == 500);
      CHECK(std::string(instant.what()) ==
            "the time stands still at 1007 us: 500 events have run there, as of a loop that waits "
            "for nothing");
    }
    CHECK(repeater.ran == round * 500);
    CHECK(w.timeline.events() == 1 + round * 500);
    CHECK(w.clock.now() == to_time(1'007));
    CHECK(w.timeline.pending() == 2);
  }
  // Nothing was lost.
  repeater.left = 3;
  w.timeline.run_until(w.clock.now() + 1s);
  CHECK(repeater.ran == 1'003);
  CHECK(w.recorder.seen.back() == std::pair<Word, std::uint64_t>{1'009, 2});
}

TEST_CASE("the events of each instant count by themselves") {
  World w;
  w.timeline.limit_instant(10);
  Repeater slow{&w.timeline, 1us, false, 1'000};
  w.timeline.after<&Repeater::repeat>(0us, slow);
  // Nine events at each of many instants.
  for (Word us = 5; us < 900; us += 5) {
    for (int i = 0; i < 8; ++i) w.timeline.after<&Recorder::note>(Span{us}, w.recorder, 0);
  }
  CHECK_NOTHROW(w.timeline.run_until(w.clock.now() + 1s));
  CHECK(slow.ran == 1'000);
  // The tenth at one instant is one too many, the ninth is not.
  Repeater burst{&w.timeline, 0us, false, 9};
  w.timeline.after<&Repeater::repeat>(0us, burst);
  CHECK_NOTHROW(w.timeline.run_until(w.clock.now()));
  w.timeline.run_until(w.clock.now() + 1us);
  burst.left = 10;
  w.timeline.after<&Repeater::repeat>(0us, burst);
  CHECK_THROWS_AS(w.timeline.run_until(w.clock.now()), EndlessInstant);
}

TEST_CASE("an instant has ten million events unless told otherwise, and no end of them at most") {
  World w;
  CHECK_THROWS_AS(w.timeline.limit_instant(0), std::invalid_argument);
  Repeater repeater{&w.timeline, 0us, true};
  w.timeline.post(&Repeater::again, &repeater);
  CHECK_THROWS_AS(w.timeline.run_until(w.clock.now()), EndlessInstant);
  CHECK(repeater.ran == 10'000'000);
  w.timeline.limit_instant(~std::uint64_t{0});
  repeater.left = 1'000;
  CHECK_NOTHROW(w.timeline.run_until(w.clock.now() + 1us));
}

TEST_CASE("random scheduling and cancelling runs as a sorted list would") {
  test::Random random("random scheduling and cancelling runs as a sorted list would");
  CAPTURE(random.repeat());
  World w;
  std::vector<std::tuple<Word, std::uint64_t, Timeline::Timer>> live;
  std::vector<std::pair<Word, std::uint64_t>> expected;
  std::vector<Timeline::Timer> over;  // whose places are used again by then
  const std::size_t rounds = test::scaled(200, 20);
  std::uint64_t next = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < 100; ++i) {
      const Time when = w.timeline.now() + Span{random.between(0, 500)};
      live.emplace_back(to_word(when), next,
                        w.timeline.at<&Recorder::note>(when, w.recorder, next));
      ++next;
    }
    for (int i = 0; i < 60; ++i) {
      const auto at = random.between(0, static_cast<std::int64_t>(live.size()) - 1);
      const Timeline::Timer timer = std::get<2>(live[static_cast<std::size_t>(at)]);
      REQUIRE(w.timeline.cancel(timer));
      REQUIRE_FALSE(w.timeline.cancel(timer));
      live.erase(live.begin() + at);
    }
    for (const Timeline::Timer& timer : over) REQUIRE_FALSE(w.timeline.cancel(timer));
    over.clear();
    const Time end = w.timeline.now() + Span{random.between(0, 300)};
    std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) {
      return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
    });
    while (!live.empty() && std::get<0>(live.front()) <= to_word(end)) {
      expected.emplace_back(std::get<0>(live.front()), std::get<1>(live.front()));
      over.push_back(std::get<2>(live.front()));
      live.erase(live.begin());
    }
    w.timeline.run_until(end);
    REQUIRE(w.timeline.pending() == live.size());
    REQUIRE(w.timeline.events() == expected.size());
    REQUIRE(w.clock.now() == end);
  }
  REQUIRE(w.recorder.seen == expected);
}

namespace {

std::vector<std::uint64_t> take_all(EventQueue& queue) {
  std::vector<std::uint64_t> ids;
  for (EventQueue::Node node{}; queue.pop(word_limit, node);) ids.push_back(node.id);
  return ids;
}

}  // namespace

TEST_CASE("random pushes, takes and erasures happen as in a sorted map") {
  test::Random random("random pushes, takes and erasures happen as in a sorted map");
  CAPTURE(random.repeat());
  EventQueue queue;
  std::multimap<Word, std::uint64_t> expected;  // equal keys keep the order of insertion
  Word now = random.between(0, 1'000);
  std::uint64_t id = 0;
  const std::size_t rounds = test::scaled(2'000, 100);
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto reach = std::int64_t{1} << random.between(0, 45);
    for (std::int64_t i = random.between(0, 60); i > 0; --i) {
      const Word time = now + random.between(0, reach);
      queue.push({time, ++id}, now);
      expected.emplace(time, id);
    }
    if (random.one_in(8)) {
      const std::uint64_t odd = random.below(2);
      queue.erase_if([&](const EventQueue::Node& node) { return node.id % 3 == odd; });
      std::erase_if(expected, [&](const auto& event) { return event.second % 3 == odd; });
    }
    const Word end = now + random.between(0, reach);
    for (EventQueue::Node node{}; queue.pop(end, node); now = node.time) {
      REQUIRE_FALSE(expected.empty());
      REQUIRE(node.time == expected.begin()->first);
      REQUIRE(node.id == expected.begin()->second);
      expected.erase(expected.begin());
    }
    REQUIRE((expected.empty() || expected.begin()->first > end));
    REQUIRE(queue.size() == expected.size());
    if (!random.one_in(3)) now = end;  // else the next pushes lie behind what was looked for
  }
}

TEST_CASE("shuffled, events of one time come in any order, and times in theirs") {
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EventQueue queue;
    queue.shuffle_ties(seed);
    for (const std::uint64_t id : {4U, 1U, 2U, 3U}) queue.push({id == 4 ? 900 : 500, id}, 0);
    const auto order = take_all(queue);
    REQUIRE(order.back() == 4);
    orders.insert(order);
  }
  CHECK(orders.size() == 6);
}

TEST_CASE("shuffled, a crowd at one time is complete, and its order is the seed's") {
  const auto order_of = [](std::uint64_t seed) {
    EventQueue queue;
    queue.shuffle_ties(seed);
    for (std::uint64_t id = 1; id <= 997; ++id) queue.push({77'777, id}, 0);
    return take_all(queue);
  };
  auto order = order_of(5);
  CHECK(order == order_of(5));
  CHECK(order != order_of(6));
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < 997; ++i) REQUIRE(order[i] == i + 1);
}
