// A shared sliding window whose interval becomes shorter or longer, on every store: exact moments.
// Threading: single-threaded.
#include "sluice/limiters/shared_sliding_window.hpp"

#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

TEST_CASE("after a shorter interval the old one still holds, for as long as it lasted",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 17, 55us, SpentUnits::forgotten);
    CHECK(limiter.try_acquire("api", 17).allowed);
    limiter.configure("api", RateType::overall, 8, 33us);
    CHECK(limiter.try_acquire("api", 1).retry_after == 55us);  // and not 33
    CHECK(limiter.try_acquire("api", 1).part == 1);            // the window that was kept
    CHECK(limiter.peek("api").remaining == 0);
    clock.advance(54us);
    CHECK(limiter.try_acquire("api", 8).retry_after == 1us);
    clock.advance(1us);
    CHECK(limiter.try_acquire("api", 8).remaining == 0);
    CHECK(limiter.try_acquire("api", 8).retry_after == 33us);
    clock.advance(33us);
    CHECK(limiter.try_acquire("api", 8).allowed);
    CHECK(limiter.peek("api", 0).reset_after == 55us);  // the window is still kept
    clock.advance(1h);
    CHECK(limiter.try_acquire("api", 8).allowed);
    CHECK(limiter.peek("api", 0).reset_after == 33us);  // nothing of the old one is left
  });
}

TEST_CASE("the rate that is in force already changes nothing", "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate", {.keep_alive = 20s});
    limiter.configure("api", RateType::overall, 9, 10s);
    CHECK(limiter.try_acquire("api", 9).allowed);
    limiter.configure("api", RateType::overall, 3, 1s);  // 9 in any 3 s is kept beside it
    const Word version = limiter.configuration("api")->version;
    for (int i = 0; i < 2; ++i) {
      clock.advance(1s);
      const auto same = limiter.configure("api", RateType::overall, 3, 1s);
      CHECK_FALSE(same.changed);
      CHECK(same.version == version);
    }
    CHECK(limiter.try_acquire("api", 1).retry_after == 1s);
    clock.advance(19s);
    limiter.configure("api", RateType::overall, 3, 1s);  // kept from now on
    clock.advance(19s);
    CHECK(limiter.try_acquire("api", 3).allowed);
    CHECK(limiter.configure("api", RateType::overall, 3, 1s, SpentUnits::forgotten).changed);
    CHECK(limiter.configure("api", RateType::per_client, 3, 1s).changed);
  });
}

TEST_CASE("a raise in a shorter interval waits only until it allows as much as the old rate",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 100, 10s, SpentUnits::forgotten);
    CHECK(limiter.try_acquire("api", 100).allowed);
    limiter.configure("api", RateType::overall, 30, 1s);      // 100 in 10 s or 300: 300 are allowed
    CHECK(limiter.try_acquire("api", 30).retry_after == 4s);  // 120 in any 4 s
    CHECK(limiter.try_acquire("api", 20).retry_after == 1s);
    clock.advance(1s);
    CHECK(limiter.try_acquire("api", 20).allowed);
    CHECK(limiter.try_acquire("api", 1).retry_after == 3s);
    clock.advance(3s);
    CHECK(limiter.try_acquire("api", 30).allowed);

    limiter.configure("api", RateType::overall, 10, 10s, SpentUnits::forgotten);
    CHECK(limiter.try_acquire("api", 10).allowed);
    limiter.configure("api", RateType::overall, 10, 1s);  // as many at once: nothing is kept
    CHECK(limiter.try_acquire("api", 10).retry_after == 1s);
  });
}

TEST_CASE("after a longer interval what the old one admitted counts in it",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 2, 5s, SpentUnits::forgotten);
    for (int i = 0; i < 12; ++i) {
      CHECK(limiter.try_acquire("api", 2).allowed);
      clock.advance(5s);
    }
    // 24 permits in the last minute, of which the log has the newest two, five seconds old.
    limiter.configure("api", RateType::overall, 24, 1min);
    CHECK(limiter.peek("api").remaining == 2);  // those sixty seconds old count no more
    CHECK(limiter.try_acquire("api", 2).allowed);
    CHECK(limiter.try_acquire("api", 1).retry_after == 5s);
    clock.advance(5s);
    CHECK(limiter.try_acquire("api", 2).allowed);

    limiter.configure("api", RateType::overall, 1, 2min);  // 24 in the last minute
    CHECK(limiter.try_acquire("api", 1).retry_after == 2min);
  });
}

TEST_CASE("permits that were reserved before a shorter interval count in the old one",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 17, 55us, SpentUnits::forgotten);
    CHECK(limiter.try_acquire("api", 17).allowed);
    for (int i = 1; i <= 3; ++i) CHECK(limiter.reserve("api", 17, 1h).retry_after == i * 55us);
    limiter.configure("api", RateType::overall, 8, 33us);
    CHECK(limiter.try_acquire("api", 1).retry_after == 4 * 55us);
    clock.advance(3 * 55us + 33us);
    CHECK(limiter.try_acquire("api", 1).retry_after == 22us);
    clock.advance(22us);
    CHECK(limiter.try_acquire("api", 8).allowed);
  });
}

TEST_CASE("a kept interval outlives further changes, and a fresh start ends it",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    const SharedSlidingWindow other(store, "rate");
    limiter.configure("api", RateType::overall, 20, 1min, SpentUnits::forgotten);
    CHECK(limiter.try_acquire("api", 20).allowed);
    limiter.configure("api", RateType::overall, 10, 30s);
    CHECK(limiter.try_acquire("api").retry_after == 1min);
    clock.advance(10s);
    other.configure("api", RateType::overall, 4, 20s);
    CHECK(limiter.try_acquire("api").retry_after == 50s);
    other.configure("api", RateType::overall, 20, 5s);
    CHECK(limiter.try_acquire("api", 20).allowed);
    other.configure("api", RateType::overall, 20, 1min, SpentUnits::forgotten);
    CHECK(limiter.try_acquire("api", 20).allowed);
    other.configure("api", RateType::overall, 10, 30s);
    other.configure("api", RateType::overall, 10, 30s, SpentUnits::forgotten);
    CHECK(limiter.try_acquire("api", 10).allowed);
    other.configure("api", RateType::per_client, 5, 5s);
    CHECK(limiter.try_acquire("api", 5).allowed);
  });
}

TEST_CASE("permits that the log has dropped count as the rate under which they were admitted",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 2, 1s, SpentUnits::forgotten);
    for (int i = 0; i < 10; ++i) {
      CHECK(limiter.try_acquire("api", 2).allowed);
      clock.advance(1s);
    }
    limiter.configure("api", RateType::overall, 8, 30s);
    clock.advance(29s);
    CHECK(limiter.try_acquire("api", 8).allowed);
    clock.advance(2s);
    CHECK(limiter.reward("api", 3).remaining == 3);  // what had made room for them has left
    CHECK(limiter.try_acquire("api", 3).allowed);
    CHECK(limiter.try_acquire("api", 1).retry_after == 28s);
    limiter.configure("api", RateType::overall, 12, 30s);
    CHECK(limiter.peek("api").remaining == 4);
    CHECK(limiter.try_acquire("api", 4).allowed);
    CHECK(limiter.reward("api", 3).remaining == 3);

    // In a minute twelve count that may have been admitted 30 s before the other nine.
    limiter.configure("api", RateType::overall, 24, 1min);
    clock.advance(30s - 1us);
    CHECK(limiter.peek("api").remaining == 3);
    clock.advance(1us);
    CHECK(limiter.peek("api").remaining == 15);
  });
}

TEST_CASE("a log is forgotten a minute after its permits have left the interval",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 3, 1s, SpentUnits::forgotten);
    Reservation one = limiter.reserve("api", 2, 0s);
    clock.advance(1min + 1s - 1us);
    limiter.configure("api", RateType::overall, 3, 1h);  // the two still count in it
    CHECK(limiter.peek("api").remaining == 1);
    clock.advance(1us);
    CHECK(limiter.peek("api").remaining == 3);
    CHECK(limiter.cancel("api", one) == 0);
    CHECK(limiter.peek("api").remaining == 3);
    CHECK(limiter.reward("api", 1).remaining == 3);
  });
}
