// Histories of sliding windows, of the sliding window counter and of fixed windows.
// Threading: single-threaded.
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

/// Callers who ask for somewhat more than one window gives.
Habits habits_for(const WindowLimit& window, Word most_cost) {
  Habits habits;
  habits.most_cost = most_cost;
  habits.most_thought = window.span * static_cast<Word>(habits.callers) * most_cost / window.limit;
  return habits;
}

/// One life and the polls; what only this limiter promises is left to `check`.
template <class Limiter, class Check>
std::size_t check_windows(VirtualClock& clock, Random& random, const Limiter& limiter,
                          const Habits& habits, Word limit, Check check) {
  const Asking one = asking(limiter, "one", 1);
  const Life life = live(clock, random, habits, one);
  check(life.history);
  check_kept(poll(clock, random, habits, asking(limiter, "two", 1), asking(limiter, "three", 1)));
  return check_life(life, limit);
}

WindowLimit draw_window(Random& random) {
  return {random.between(1, 8), Span{random.between(1'000, 1'000'000)}};
}

/// The full multiples of `width` around a history.
std::vector<Time> edges_of(const History& history, Span width) {
  std::vector<Time> edges;
  const Word first = to_word(history.front().at) / width.count() * width.count();
  for (Time edge = to_time(first); edge <= history.back().at + width; edge += width) {
    edges.push_back(edge);
  }
  return edges;
}

}  // namespace

TEST_CASE("histories of sliding windows keep every window, its hints and its pace on every store",
          "[invariants][sliding_window][S2][S5][L1][L2]") {
  Random random(
      "histories of sliding windows keep every window, its hints and its pace on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    for (std::size_t i = 0; i < lives(); ++i) {
      const WindowLimit narrow = draw_window(random);
      const WindowLimit wide{narrow.limit + random.between(1, 10),
                             narrow.span * random.between(2, 5)};
      const SlidingWindow both(store, "both" + std::to_string(i), {narrow, wide});
      const Habits habits = habits_for(narrow, random.between(1, narrow.limit));
      proven +=
          check_windows(clock, random, both, habits, narrow.limit, [&](const History& history) {
            check_kept(check_window(history, narrow.span, narrow.limit));
            check_kept(check_window(history, wide.span, wide.limit));
          });
      const SlidingWindow one(store, "one" + std::to_string(i), {narrow});
      proven += check_windows(
          clock, random, one, habits_for(narrow, 1), narrow.limit, [&](const History& history) {
            check_kept(check_window(history, narrow.span, narrow.limit));
            check_kept(check_work_conserving(
                history, {.burst = narrow.limit, .units = narrow.limit, .period = narrow.span}));
          });
    }
    CHECK(proven > 0);
  });
}

TEST_CASE("histories of the sliding window counter stay below its worst case on every store",
          "[invariants][sliding_window_counter][S2][S5][L1]") {
  Random random("histories of the sliding window counter stay below its worst case on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    for (std::size_t i = 0; i < lives(); ++i) {
      const WindowLimit window = draw_window(random);
      const SlidingWindowCounter counter(store, "counter" + std::to_string(i), window);
      const Habits habits = habits_for(window, random.between(1, window.limit));
      proven +=
          check_windows(clock, random, counter, habits, window.limit, [&](const History& history) {
            check_kept(check_window(history, window.span, counter.worst_case()));
          });
    }
    CHECK(proven > 0);
  });
}

TEST_CASE("histories of fixed windows keep each of them and twice the limit in any, on every store",
          "[invariants][fixed_window][S2][S5][L1][L2]") {
  Random random(
      "histories of fixed windows keep each of them and twice the limit in any, on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    for (std::size_t i = 0; i < lives(); ++i) {
      const auto [limit, width] = draw_window(random);
      const FixedWindow windows(store, "fixed" + std::to_string(i), limit, Calendar::every(width));
      const Word most_cost = i % 2 == 0 ? 1 : random.between(1, limit);
      proven += check_windows(clock, random, windows, habits_for({limit, width}, most_cost), limit,
                              [&, limit = limit, width = width](const History& history) {
                                check_kept(check_aligned(history, edges_of(history, width), limit));
                                check_kept(check_window(history, width, 2 * limit));
                                if (most_cost > 1)
                                  return;  // larger ones leave the rest of a window unused
                                check_kept(check_work_conserving(
                                    history, {.burst = limit, .units = limit, .period = width}));
                              });
    }
    CHECK(proven > 0);
  });
}
