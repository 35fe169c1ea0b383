// How sliding windows change grants that others came behind, in exact integers, on every store.
// Threading: single-threaded.
#include <vector>

#include "sluice/limiters/sliding_window.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using test::for_each_store;

using Left = std::vector<Word>;

TEST_CASE("a grant is settled downwards after a later one", "[sliding_window][settle]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{20, 60s}});
    Reservation a = limiter.reserve("k", 10);
    clock.advance(1s);
    Reservation b = limiter.reserve("k", 10);
    clock.advance(1s);
    CHECK(limiter.settle("k", a, 2).refunded == 8);
    CHECK(limiter.peek("k").remaining == 8);
    CHECK(limiter.try_acquire("k", 8).remaining == 0);
    CHECK(limiter.try_acquire("k", 2).retry_after == 58s);  // when the rest of A leaves
    CHECK(limiter.try_acquire("k", 3).retry_after == 59s);
    CHECK(limiter.cancel("k", b) == 10);
    CHECK(limiter.peek("k").remaining == 10);
  });
}

TEST_CASE("a grant is refunded behind a thousand others", "[sliding_window][settle]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{1'500, 10s}, {2'000, 60s}});
    Reservation first = limiter.reserve("k", 500);
    for (int i = 0; i < 1'000; ++i) {
      clock.advance(1ms);
      REQUIRE(limiter.try_acquire("k").allowed);
    }
    CHECK(limiter.remaining("k") == Left{0, 500});
    CHECK(limiter.refund("k", first, 300) == 300);
    CHECK(limiter.remaining("k") == Left{300, 800});
    CHECK(limiter.try_acquire("k", 301).retry_after == 9s);
    CHECK(limiter.try_acquire("k", 501).retry_after == 9s + 1ms);
    clock.advance(9s);
    CHECK(limiter.remaining("k") == Left{500, 800});
    CHECK(limiter.cancel("k", first) == 200);  // it counts in the longer window
    CHECK(limiter.remaining("k") == Left{500, 1'000});
  });
}

TEST_CASE("nothing comes back of a grant that has left, or twice", "[sliding_window][settle]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 10s}});
    Reservation early = limiter.reserve("k", 2);
    Reservation copy = early;
    clock.advance(1s);
    Reservation late = limiter.reserve("k", 2);
    CHECK(limiter.cancel("k", early) == 2);
    CHECK(limiter.cancel("k", copy) == 0);
    CHECK(limiter.remaining("k") == Left{3});
    copy = late;
    clock.advance(10s);
    CHECK(limiter.cancel("k", late) == 0);
    CHECK(limiter.try_acquire("k", 5).remaining == 0);
    CHECK(limiter.settle("k", copy, 9).charged == 0);
    CHECK(copy.settled == 0);
    CHECK(limiter.remaining("k") == Left{0});
  });
}

TEST_CASE("a copy of a grant that was taken out does not find the next one",
          "[sliding_window][settle]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 10s}});
    Reservation first = limiter.reserve("k", 2);
    Reservation copy = first;
    CHECK(limiter.cancel("k", first) == 2);
    clock.advance(1us);
    Reservation next = limiter.reserve("k", 3);
    CHECK(next.state[0] == copy.state[0]);  // the same number, of another time
    CHECK(limiter.cancel("k", copy) == 0);
    CHECK(limiter.remaining("k") == Left{2});
    CHECK(limiter.cancel("k", next) == 3);
  });
}

TEST_CASE("two grants of one microsecond are two", "[sliding_window][settle]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindow limiter(store, "w", {{9, 10s}});
    Reservation one = limiter.reserve("k", 2);
    Reservation two = limiter.reserve("k", 4);
    CHECK(limiter.settle("k", one, 1).refunded == 1);
    CHECK(limiter.cancel("k", one) == 1);
    CHECK(limiter.remaining("k") == Left{5});
    CHECK(limiter.settle("k", two, 7).charged == 3);
    CHECK(limiter.remaining("k") == Left{2});
    CHECK(limiter.cancel("k", two) == 4);
    CHECK(limiter.remaining("k") == Left{6});
  });
}

TEST_CASE("a grant is settled upwards beyond the limit, and hints wait for it",
          "[sliding_window][settle]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{3, 5s}, {10, 60s}});
    Reservation first = limiter.reserve("k", 3);
    clock.advance(5s);
    Reservation second = limiter.reserve("k", 1);
    CHECK(limiter.settle("k", first, 23).charged == 20);
    CHECK(first.settled == 20);
    CHECK(limiter.remaining("k") == Left{2, 0});
    CHECK(limiter.try_acquire("k").retry_after == 55s);
    CHECK(limiter.settle("k", second, 4).charged == 3);
    CHECK(limiter.remaining("k") == Left{0, 0});
    clock.advance(55s - 1us);
    CHECK(limiter.try_acquire("k").retry_after == 1us);
    clock.advance(1us);
    CHECK(limiter.try_acquire("k", 3).allowed);
  });
}

TEST_CASE("limits may be 2^40, in few grants or many", "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Word most = Word{1} << 40;
    const SlidingWindow limiter(store, "w", {{most, 60s}});
    CHECK(limiter.try_acquire("k", most - 5).remaining == 5);
    clock.advance(1s);
    Reservation rest = limiter.reserve("k", 5);
    CHECK(limiter.try_acquire("k", 6).retry_after == 59s);
    CHECK(limiter.settle("k", rest, most).charged == most - 5);
    CHECK(limiter.try_acquire("k", most).retry_after == 60s);
    clock.advance(59s);
    CHECK(limiter.remaining("k") == Left{0});
    clock.advance(1s);
    CHECK(limiter.try_acquire("k", most).remaining == 0);
  });
}

TEST_CASE("the 65,537th grant waits until the first leaves the longest window",
          "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{1'000'000, 60s}, {2'000'000, 10min}});
    const Time start = clock.now();
    for (int i = 0; i < 65'535; ++i) {
      REQUIRE(limiter.try_acquire("k").allowed);
      clock.advance(1us);
    }
    CHECK(limiter.remaining("k") == Left{934'465, 1'934'465});
    const Decision last = limiter.try_acquire("k");
    CHECK(last.allowed);
    CHECK(last.remaining == 0);
    clock.set(start + 30s);
    CHECK(limiter.remaining("k") == Left{934'464, 0});
    for (const Span wait : {0s, 3'600s}) {
      const Decision refused = limiter.reserve("k", 1, wait);
      CHECK_FALSE(refused.allowed);
      CHECK(refused.part == 1);
      CHECK(refused.retry_after == 570s);
    }
    CHECK(limiter.try_acquire("k", 0).allowed);
    clock.set(start + 10min - 1us);
    CHECK(limiter.try_acquire("k").retry_after == 1us);
    clock.advance(1us);
    Reservation next = limiter.reserve("k", 7);
    CHECK(next.allowed);
    CHECK(limiter.try_acquire("k").retry_after == 1us);
    CHECK(limiter.cancel("k", next) == 7);
    CHECK(limiter.try_acquire("k").allowed);
    clock.advance(1us);
    CHECK(limiter.remaining("k") == Left{999'999, 2'000'000 - 65'535});
  });
}

TEST_CASE("a ring grows with what its windows hold", "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{40, 10s}, {90, 60s}});
    std::vector<Reservation> held;
    for (int i = 0; i < 40; ++i) {
      held.push_back(limiter.reserve("k", 1));
      clock.advance(200ms);
    }
    clock.advance(2s);  // to 10 s
    for (int i = 0; i < 40; ++i) {
      REQUIRE(limiter.try_acquire("k").allowed);
      clock.advance(200ms);
    }
    CHECK(limiter.remaining("k") == Left{0, 10});  // 18 s: the first forty have left 10 s
    for (Reservation& one : held) CHECK(limiter.cancel("k", one) == 1);
    CHECK(limiter.remaining("k") == Left{0, 50});
    CHECK(limiter.try_acquire("k").retry_after == 2s);
  });
}

TEST_CASE("a reward takes the newest grants, and a part of the next", "[sliding_window][reward]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{9, 5s}, {12, 60s}});
    Reservation first = limiter.reserve("k", 5);
    clock.advance(5s);
    CHECK(limiter.try_acquire("k", 2).allowed);
    CHECK(limiter.try_acquire("k", 1).allowed);
    CHECK(limiter.reserve("k", 2, 60s).allowed);
    CHECK(limiter.reward("k", 4).remaining == 6);
    CHECK(limiter.remaining("k") == Left{8, 6});
    CHECK(limiter.reward("k", 3).remaining == 9);
    CHECK(limiter.remaining("k") == Left{9, 9});
    CHECK(limiter.cancel("k", first) == 3);
    CHECK(limiter.remaining("k") == Left{9, 12});
  });
}

TEST_CASE("after the clock was set far back, what was later is one grant that nobody gives back",
          "[sliding_window][settle]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{9, 10min}});
    const Time start = clock.now();
    Reservation before = limiter.reserve("k", 1);
    clock.advance(2min);
    Reservation later = limiter.reserve("k", 3);
    clock.advance(1s);
    CHECK(limiter.try_acquire("k", 2).allowed);
    clock.set(start + 30s);
    Reservation one = limiter.reserve("k", 5);  // whatever the log holds
    CHECK(one.allowed);
    CHECK(limiter.remaining("k") == Left{0});
    CHECK(limiter.cancel("k", later) == 0);
    CHECK(limiter.cancel("k", one) == 5);
    CHECK(limiter.cancel("k", before) == 1);
    CHECK(limiter.remaining("k") == Left{4});
    CHECK(limiter.try_acquire("k", 5).retry_after == 10min);
  });
}

TEST_CASE("a grant under a clock that stands still is given back", "[sliding_window][settle]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 10s}});
    CHECK(limiter.try_acquire("k", 2).allowed);
    clock.advance(-30s);
    Reservation grant = limiter.reserve("k", 3);
    CHECK(grant.allowed);
    CHECK(limiter.cancel("k", grant) == 3);
    CHECK(limiter.remaining("k") == Left{3});
  });
}
