// The order of events, cancellation and the clock. Threading: single-threaded.
#include "sluice/sim/timeline.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

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

TEST_CASE("events run in the order of their times, equal times as they were scheduled") {
  World w;
  w.timeline.after<&Recorder::note>(30us, w.recorder, 1);
  w.timeline.after<&Recorder::note>(10us, w.recorder, 2);
  w.timeline.after<&Recorder::note>(30us, w.recorder, 3);
  w.timeline.after<&Recorder::note>(0us, w.recorder, 4);
  w.timeline.run_until(w.clock.now() + 1ms);
  using Seen = std::vector<std::pair<Word, std::uint64_t>>;
  CHECK(w.recorder.seen == Seen{{1'000, 4}, {1'010, 2}, {1'030, 1}, {1'030, 3}});
  CHECK(w.clock.now() == to_time(2'000));
  CHECK(w.timeline.events() == 4);
  CHECK(w.timeline.pending() == 0);
}

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

TEST_CASE("a cancelled event never runs, and is cancelled once") {
  World w;
  const auto timer = w.timeline.after<&Recorder::note>(10us, w.recorder, 1);
  w.timeline.after<&Recorder::note>(10us, w.recorder, 2);
  CHECK(w.timeline.cancel(timer));
  CHECK_FALSE(w.timeline.cancel(timer));
  CHECK_FALSE(w.timeline.cancel(Timeline::Timer{}));
  CHECK(w.timeline.pending() == 1);
  w.timeline.run_until(w.clock.now() + 1ms);
  CHECK(w.recorder.seen.size() == 1);
  CHECK(w.recorder.seen[0].second == 2);
}

TEST_CASE("the timer of an event that ran cancels nothing, also when its place is used again") {
  World w;
  const auto old = w.timeline.after<&Recorder::note>(10us, w.recorder, 1);
  w.timeline.run_until(w.clock.now() + 10us);
  w.timeline.after<&Recorder::note>(10us, w.recorder, 2);
  CHECK_FALSE(w.timeline.cancel(old));
  w.timeline.run_until(w.clock.now() + 10us);
  CHECK(w.recorder.seen.size() == 2);
}

TEST_CASE("an event in the past or beyond 2^52 us is refused and changes nothing") {
  World w;
  CHECK_THROWS_AS(w.timeline.at<&Recorder::note>(to_time(999), w.recorder), std::out_of_range);
  CHECK_THROWS_AS(w.timeline.at<&Recorder::note>(to_time(word_limit + 1), w.recorder),
                  std::out_of_range);
  CHECK_THROWS_AS(w.timeline.run_until(to_time(999)), std::out_of_range);
  CHECK(w.timeline.pending() == 0);
  CHECK_FALSE(w.timeline.step());
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

TEST_CASE("random scheduling and cancelling runs as a sorted list would") {
  test::Random random("random scheduling and cancelling runs as a sorted list would");
  CAPTURE(random.repeat());
  World w;
  std::vector<std::tuple<Word, std::uint64_t, Timeline::Timer>> live;
  std::vector<std::pair<Word, std::uint64_t>> expected;
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
      REQUIRE(w.timeline.cancel(std::get<2>(live[static_cast<std::size_t>(at)])));
      live.erase(live.begin() + at);
    }
    const Time end = w.timeline.now() + Span{random.between(0, 300)};
    std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) {
      return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
    });
    while (!live.empty() && std::get<0>(live.front()) <= to_word(end)) {
      expected.emplace_back(std::get<0>(live.front()), std::get<1>(live.front()));
      live.erase(live.begin());
    }
    w.timeline.run_until(end);
    REQUIRE(w.timeline.pending() == live.size());
  }
  REQUIRE(w.recorder.seen == expected);
}
