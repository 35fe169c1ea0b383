// The shared sliding window's behaviour, in exact integers, on every store.
// Threading: single-threaded.
#include "sluice/limiters/shared_sliding_window.hpp"

#include <limits>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/support/far_client.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

std::error_code error_of(const auto& call) {
  std::error_code error;
  static_cast<void>(call(error));
  return error;
}

}  // namespace

TEST_CASE("permits that were taken at one instant all come back, window after window",
          "[shared_sliding_window][C-050][C-052]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 3, 1min, SpentUnits::forgotten);
    for (int window = 0; window < 20; ++window) {
      for (Word left = 2; left >= 0; --left) {
        CHECK(limiter.try_acquire("api").remaining == left);
        CHECK(limiter.peek("api").remaining == left);  // spent and available make the rate
      }
      CHECK_FALSE(limiter.try_acquire("api").allowed);
      clock.advance(1min);
      CHECK(limiter.peek("api").remaining == 3);
    }
  });
}

TEST_CASE("a setting that is not used is forgotten, and one in use is not",
          "[shared_sliding_window][C-051][C-053]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate", {.keep_alive = 1h});
    limiter.configure("api", RateType::overall, 3, 1min, SpentUnits::forgotten);
    for (int i = 0; i < 20; ++i) {
      clock.advance(20min);
      CHECK(limiter.try_acquire("api").allowed);
    }
    clock.advance(1h);
    CHECK(error_of([&](auto& e) { return limiter.try_acquire("api", 1, e); }) ==
          Errc::not_configured);
    CHECK_FALSE(limiter.configuration("api").has_value());
    CHECK(limiter.try_configure("api", RateType::overall, 2, 1min)
              .changed);  // and it is usable again
    CHECK(limiter.try_acquire("api", 2).allowed);
    CHECK_FALSE(limiter.try_acquire("api").allowed);
  });
}

TEST_CASE("the store's clock decides, and a hint is never longer than the interval",
          "[shared_sliding_window][C-054]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    for (const Span ahead : std::initializer_list<Span>{0s, 61s, -100s, 24h, -24h}) {
      CAPTURE(ahead.count());
      FarClient client(store, clock, ahead);
      const SharedSlidingWindow here(store, "rate");
      const SharedSlidingWindow there(client, "rate");
      here.configure("api", RateType::overall, 5, 1min, SpentUnits::forgotten);
      CHECK(here.try_acquire("api", 2).allowed);
      client.pass(10s);
      CHECK(there.try_acquire("api", 3).allowed);  // as many as are left, by whichever client
      CHECK_FALSE(there.try_acquire("api").allowed);
      CHECK(there.peek("api").remaining == 0);
      CHECK(there.try_acquire("api").retry_after == 50s);
      CHECK(there.try_acquire("api", 3).retry_after == 1min);
      CHECK(here.try_acquire("api", 3).retry_after == 1min);
      client.pass(50s - 1us);
      CHECK(there.try_acquire("api", 2).retry_after == 1us);
      CHECK(here.try_acquire("api").retry_after == 1us);
      client.pass(1us);
      CHECK(there.peek("api").remaining == 2);
      CHECK(there.try_acquire("api", 2).allowed);
      CHECK(here.try_acquire("api").retry_after == 10s);
      CHECK(here.try_acquire("api", 5).retry_after == 1min);
    }
  });
}

TEST_CASE(
    "a server's clock that is set back far admits one request, and hints stay in the interval",
    "[shared_sliding_window][C-054]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 5, 1min, SpentUnits::forgotten);
    REQUIRE(limiter.try_acquire("api", 5).allowed);
    clock.advance(-2min);  // too far back for the log: it starts anew with one request
    CHECK(limiter.try_acquire("api", 5).allowed);
    for (const Cost permits : {1, 3, 5}) {
      const Decision refused = limiter.try_acquire("api", permits);
      CHECK_FALSE(refused.allowed);
      CHECK(refused.retry_after == 1min);
    }
    clock.advance(1min - 1us);
    CHECK(limiter.try_acquire("api").retry_after == 1us);
    clock.advance(1us);
    CHECK(limiter.try_acquire("api", 5).allowed);
  });
}

TEST_CASE("the hint is until enough permits are back, not until the first",
          "[shared_sliding_window][C-055][C-061]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 5, 1s, SpentUnits::forgotten);
    for (int i = 0; i < 5; ++i, clock.advance(100ms)) CHECK(limiter.try_acquire("api").allowed);
    CHECK(limiter.try_acquire("api", 3).retry_after == 700ms);
    clock.advance(700ms - 1us);
    CHECK(limiter.try_acquire("api", 3).retry_after == 1us);  // no digit is lost
    clock.advance(1us);
    CHECK(limiter.try_acquire("api", 3).allowed);
  });
}

TEST_CASE("the first rate wins, a set one starts afresh, an updated one keeps what is spent",
          "[shared_sliding_window][C-056]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow here(store, "rate");
    const SharedSlidingWindow there(store, "rate");
    CHECK(here.try_configure("api", RateType::overall, 3, 1min).changed);
    CHECK_FALSE(there.try_configure("api", RateType::overall, 10, 1min).changed);
    CHECK(there.try_acquire("api", 3).allowed);
    CHECK_FALSE(here.try_acquire("api").allowed);
    const Word before = here.configuration("api")->version;
    CHECK(here.configure("api", RateType::overall, 10, 1min).version > before);
    CHECK(there.peek("api").remaining == 7);  // it has not been told, and knows
    CHECK(there.try_acquire("api", 7).allowed);
    here.configure("api", RateType::overall, 3, 1min);
    CHECK_FALSE(there.try_acquire("api").allowed);  // and not nine more
    CHECK(there.peek("api").remaining == 0);
    clock.advance(1min);
    CHECK(there.peek("api").remaining == 3);
    CHECK(there.try_acquire("api", 3).allowed);
    here.configure("api", RateType::overall, 4, 1min, SpentUnits::forgotten);
    CHECK(there.peek("api").remaining == 4);
    CHECK(there.try_acquire("api", 4).allowed);  // more than the rate that it remembered
    CHECK(there.configuration("api")->rate == 4);
    CHECK(there.configuration("api")->interval == 1min);
  });
}

TEST_CASE("a reservation is granted in order of arrival, and gives back what is still the newest",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow here(store, "rate");
    const SharedSlidingWindow there(store, "rate");
    here.configure("api", RateType::overall, 4, 10s, SpentUnits::forgotten);
    const Time start = clock.now();
    REQUIRE(here.try_acquire("api", 3).allowed);
    Reservation first = here.reserve("api", 2, 10s);
    REQUIRE(first.allowed);
    CHECK(first.granted == 2);
    CHECK(first.ready_at() == start + 10s);
    CHECK(there.try_acquire("api").retry_after == 10s);  // nothing overtakes it
    Reservation second = there.reserve("api", 2, 10s);
    CHECK(second.ready_at() == start + 10s);
    const Reservation late = here.reserve("api", 1, 10s - 1us);
    CHECK_FALSE(late.allowed);
    CHECK(late.granted == 0);
    CHECK(late.retry_after == 10s + 1us);
    CHECK(there.refund("api", second, 1) == 1);
    CHECK(second.granted == 1);
    CHECK(there.cancel("api", second) == 1);
    CHECK(there.cancel("api", second) == 0);
    CHECK(here.cancel("api", first) == 2);
    CHECK(here.peek("api").remaining == 1);
  });
}

TEST_CASE("permits that were reserved under another rate come back if their log is still in use",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow here(store, "rate");
    const SharedSlidingWindow there(store, "rate");
    here.configure("api", RateType::overall, 4, 10s, SpentUnits::forgotten);
    Reservation kept = here.reserve("api", 4, 0s);
    there.configure("api", RateType::overall, 6, 10s);
    CHECK(there.peek("api").remaining == 2);
    CHECK(here.refund("api", kept, 3) == 3);
    CHECK(there.peek("api").remaining == 5);
    there.configure("api", RateType::overall, 2, 10s, SpentUnits::forgotten);
    CHECK(there.try_acquire("api", 2).allowed);
    CHECK(here.peek("api").remaining == 0);
    (void)here.cancel("api", kept);  // of a log that nobody asks any more
    CHECK(here.peek("api").remaining == 0);
    Reservation fresh = here.reserve("api", 2, 10s);  // by the rate that it had to read first
    CHECK(fresh.retry_after == 10s);
    CHECK(here.cancel("api", fresh) == 2);
  });
}

TEST_CASE("an estimate of permits is settled: given back, or charged beyond the rate",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 10, 10s, SpentUnits::forgotten);
    Reservation less = limiter.reserve("api", 6, 0s);
    CHECK(limiter.settle("api", less, 2).refunded == 4);
    CHECK(less.granted == 2);
    clock.advance(1s);
    Reservation more = limiter.reserve("api", 4, 0s);
    CHECK(limiter.settle("api", more, 4).charged == 0);
    CHECK(limiter.settle("api", more, 7).charged == 3);
    CHECK(limiter.peek("api").remaining == 1);
    CHECK(limiter.settle("api", more, 9).charged == 2);  // eleven of ten
    CHECK(limiter.try_acquire("api").retry_after == 9s);
    CHECK(limiter.try_acquire("api", 2).retry_after == 10s);
    Reservation refused = limiter.reserve("api", 1, 0s);
    CHECK(limiter.settle("api", refused, 5).charged == 0);
    CHECK(limiter.settle("api", more, 20).charged == 11);
    CHECK(more.settled == 16);
    CHECK(error_of([&](auto& e) { limiter.settle("api", more, -1, e); }) == Errc::invalid_cost);
    CHECK_THROWS_AS(limiter.settle("api", more, -1), std::system_error);
    CHECK(limiter.try_acquire("api").retry_after == 10s);
    clock.advance(9s);
    CHECK(limiter.peek("api").remaining == 0);
    clock.advance(1s);
    CHECK(limiter.peek("api").remaining == 10);
  });
}

TEST_CASE("what cannot be reserved or given back is a typed error, and changes nothing",
          "[shared_sliding_window][C-063]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow limiter(store, "rate");
    CHECK(error_of([&](auto& e) { return limiter.reserve("api", 1, 1s, e); }) ==
          Errc::not_configured);
    CHECK_THROWS_AS(limiter.reserve("api", 1, 1s), std::system_error);
    limiter.configure("api", RateType::overall, 4, 10s, SpentUnits::forgotten);
    const auto fails = [&](Cost permits, Span max_wait) {
      return error_of([&](auto& e) { return limiter.reserve("api", permits, max_wait, e); });
    };
    CHECK(fails(5, 1s) == Errc::cost_exceeds_capacity);
    CHECK(fails(-1, 1s) == Errc::invalid_cost);
    CHECK(fails(1, -1us) == Errc::invalid_argument);
    CHECK(fails(1, std::chrono::days{366} + 1us) == Errc::invalid_argument);
    Reservation kept = limiter.reserve("api", 2, 0s);
    CHECK(error_of([&](auto& e) { limiter.refund("api", kept, 3, e); }) == Errc::invalid_argument);
    CHECK(error_of([&](auto& e) { limiter.refund("api", kept, -1, e); }) == Errc::invalid_cost);
    CHECK_THROWS_AS(limiter.refund("api", kept, 3), std::system_error);
    CHECK(kept.granted == 2);
    CHECK(limiter.peek("api").remaining == 2);
    Reservation none;
    CHECK(limiter.cancel("api", none) == 0);
  });
}

TEST_CASE("no rate and more permits than the rate are typed errors",
          "[shared_sliding_window][C-057]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow limiter(store, "rate");
    CHECK(error_of([&](auto& e) { return limiter.try_acquire("api", 1, e); }) ==
          Errc::not_configured);
    CHECK(error_of([&](auto& e) { return limiter.peek("api", e); }) == Errc::not_configured);
    CHECK_THROWS_AS(limiter.try_acquire("api"), std::system_error);
    limiter.configure("api", RateType::overall, 3, 1min, SpentUnits::forgotten);
    CHECK(error_of([&](auto& e) { return limiter.try_acquire("api", 4, e); }) ==
          Errc::cost_exceeds_capacity);
    // In the script as well, for a client that has read nothing.
    const Word version = limiter.configuration("api")->version;
    const Step step{&shared_sliding_window_expect, {"api", "rate"}, {3, version, 4, 1'000'000'000}};
    CHECK(error_of([&](auto& e) { return decide(store, step, e); }) == Errc::cost_exceeds_capacity);
    CHECK(limiter.peek("api").remaining == 3);
  });
}

TEST_CASE("permits below zero or beyond what counts are refused, and change nothing",
          "[shared_sliding_window][C-058][C-059][C-060]") {
  static_assert(!std::is_constructible_v<Cost, double>);  // no permit and a half
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 3, 1min, SpentUnits::forgotten);
    CHECK(error_of([&](auto& e) { return limiter.try_acquire("api", -5, e); }) ==
          Errc::invalid_cost);
    for (const Word permits : {(Word{1} << 32) + 1, std::numeric_limits<Word>::max()}) {
      CHECK(error_of([&](auto& e) { return limiter.try_acquire("api", permits, e); }) ==
            Errc::cost_exceeds_capacity);
    }
    CHECK(limiter.peek("api").remaining == 3);
    clock.advance(1min);
    CHECK(limiter.peek("api").remaining == 3);
  });
}

TEST_CASE("a rate of ten thousand single permits goes round more than once",
          "[shared_sliding_window][C-062]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 10'000, 1min, SpentUnits::forgotten);
    for (int round = 0; round < 2; ++round) {
      int admitted = 0;
      for (int i = 0; i < 10'001; ++i) admitted += limiter.try_acquire("api").allowed ? 1 : 0;
      CHECK(admitted == 10'000);
      clock.advance(1min);
    }
    CHECK(limiter.try_acquire("api", 10'000).allowed);
  });
}

TEST_CASE("from the first request on, no interval holds more than the rate, to its edges",
          "[shared_sliding_window][C-063]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 2, 10s, SpentUnits::forgotten);
    int admitted = 0;
    for (int i = 0; i < 10; ++i) admitted += limiter.try_acquire("api").allowed ? 1 : 0;
    CHECK(admitted == 2);
    clock.advance(10s - 1us);
    CHECK_FALSE(limiter.try_acquire("api").allowed);
    clock.advance(1us);
    CHECK(limiter.try_acquire("api", 2).allowed);
    CHECK_FALSE(limiter.try_acquire("api").allowed);
  });
}

TEST_CASE("each client has its own permits, if the rate is per client", "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow a(store, "rate", {.client = "a"});
    const SharedSlidingWindow b(store, "rate", {.client = "b"});
    const SharedSlidingWindow again(store, "rate", {.client = "a"});
    a.configure("api", RateType::per_client, 2, 1min, SpentUnits::forgotten);
    CHECK(a.try_acquire("api", 2).allowed);
    CHECK(b.try_acquire("api", 2).allowed);
    CHECK_FALSE(again.try_acquire("api").allowed);
    CHECK(a.configuration("api")->type == RateType::per_client);
    a.configure("api", RateType::overall, 3, 1min);  // another type: a log of its own
    CHECK(b.try_acquire("api", 3).allowed);
    CHECK_FALSE(a.try_acquire("api").allowed);
    CHECK(SharedSlidingWindow(store, "rate").client() !=
          SharedSlidingWindow(store, "rate").client());
  });
}

TEST_CASE("a rate, an interval or a name out of range is refused", "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow limiter(store, "rate", {.keep_alive = 1h});
    const auto refused = [&](Word rate, Span interval) {
      return error_of([&](auto& e) {
               limiter.configure("api", RateType::overall, rate, interval, SpentUnits::forgotten,
                                 e);
             }) == Errc::invalid_argument;
    };
    CHECK(refused(unlimited - 1, 1s));
    CHECK(refused(unlimited + 1, 1s));
    CHECK(refused(-1, 1s));
    CHECK(refused(65'537, 1s));
    CHECK(refused(1, 0s));
    CHECK(refused(1, -1s));
    CHECK(refused(1, 1h + 1us));
    CHECK_FALSE(limiter.configuration("api").has_value());
    CHECK(error_of([&](auto& e) { return limiter.try_acquire("", 1, e); }) == Errc::invalid_key);
    CHECK_THROWS_AS(SharedSlidingWindow(store, ""), std::invalid_argument);
    CHECK_THROWS_AS(SharedSlidingWindow(store, "rate", {.keep_alive = 0s}), std::invalid_argument);
  });
}
