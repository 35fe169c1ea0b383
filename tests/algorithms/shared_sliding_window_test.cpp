// The shared sliding window's behaviour, in exact integers, on every store.
// Threading: single-threaded.
#include "sluice/limiters/shared_sliding_window.hpp"

#include <array>
#include <stdexcept>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/support/far_client.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

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
    clock.advance(1h - 1us);
    CHECK_FALSE(limiter.configure("api", RateType::overall, 2, 1min).changed);
    clock.advance(1h - 1us);  // the same rate is kept from then on
    CHECK(limiter.configuration("api").has_value());
  });
}

TEST_CASE("the store's clock decides, and a hint is never longer than the interval",
          "[shared_sliding_window][C-008][C-054][C-055][C-061]") {
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

TEST_CASE("a shared sliding window is blocked for all clients and rewarded, by the setting of now",
          "[shared_sliding_window][block][reward]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow here(store, "rate");
    const SharedSlidingWindow there(store, "rate");
    std::error_code error;
    here.block("t", 1s, error);
    CHECK(error == Errc::not_configured);
    CHECK_THROWS_AS(here.reward("t", 1), std::system_error);
    here.configure("t", RateType::overall, 5, 10s, SpentUnits::forgotten);
    CHECK(here.try_acquire("t", 5).allowed);
    CHECK(there.reward("t", 2).remaining == 2);
    CHECK(here.peek("t").remaining == 2);
    there.configure("t", RateType::overall, 6, 10s);
    const Decision blocked = here.block("t", 4s);
    CHECK(blocked.allowed);
    CHECK(blocked.remaining == 0);
    CHECK(blocked.step == 0);
    CHECK(there.peek("t").remaining == 0);
    CHECK(there.try_acquire("t").retry_after == 4s);
    CHECK(there.try_acquire("t").part == 1);
    CHECK(there.peek("t", 4).retry_after == 10s);
    CHECK(there.peek("t", 4).part == 0);
    here.configure("t", RateType::overall, 7, 10s);
    clock.advance(4s - 1us);
    CHECK(there.peek("t").retry_after == 1us);
    clock.advance(1us);
    CHECK(there.try_acquire("t", 4).allowed);
    CHECK(here.reward("t", 1000).remaining == 7);

    here.block("t", SharedSlidingWindow::max_block);
    CHECK(here.peek("t").retry_after == SharedSlidingWindow::max_block);
    here.configure("t", RateType::overall, 5, 10s, SpentUnits::forgotten);  // another log
    CHECK(there.try_acquire("t", 5).allowed);
    for (const Span wrong : {Span{-1}, SharedSlidingWindow::max_block + 1us}) {
      here.block("t", wrong, error);
      CHECK(error == Errc::invalid_argument);
    }
    here.reward("t", -1, error);
    CHECK(error == Errc::invalid_cost);
    CHECK_THROWS_AS(here.block("t", -1us), std::system_error);
    CHECK(here.peek("t").remaining == 0);
  });
}

TEST_CASE("of a rate for each client only the one that asks is blocked and rewarded",
          "[shared_sliding_window][block][reward]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow one(store, "rate", {.client = "one"});
    const SharedSlidingWindow two(store, "rate", {.client = "two"});
    one.configure("t", RateType::per_client, 5, 10s, SpentUnits::forgotten);
    CHECK(one.try_acquire("t", 4).allowed);
    CHECK(two.try_acquire("t", 4).allowed);
    one.block("t", 3s);
    two.reward("t", 4);
    CHECK(one.peek("t").retry_after == 3s);
    CHECK(two.peek("t").remaining == 5);
    one.reward("t", 9);
    CHECK(one.peek("t", 5).retry_after == 3s);
  });
}

TEST_CASE("the steps of a shared sliding window's block and reward serve in plans",
          "[shared_sliding_window][block][reward][composing]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow rate(store, "rate");
    const TokenBucket user(store, "user", Quota::per_hour(3));
    std::error_code error;
    CHECK(rate.block_steps("t", 1s, error).size() == 0);
    CHECK(error == Errc::not_configured);
    CHECK_THROWS_AS(rate.block_steps("t", 1s), std::system_error);
    CHECK_THROWS_AS(rate.reward_steps("t", 1), std::system_error);
    rate.configure("t", RateType::overall, 5, 10s, SpentUnits::forgotten);
    CHECK(rate.try_acquire("t", 5).allowed);
    const auto plan = [&](const SharedSlidingWindowSteps& steps) {
      return decide(store, std::array{user.acquire_step("alice"), steps[0], steps[1]}, error);
    };
    CHECK(plan(rate.reward_steps("t", 100)).allowed);
    CHECK(rate.peek("t").remaining == 5);
    CHECK(plan(rate.block_steps("t", 4s)).allowed);
    CHECK(rate.peek("t").retry_after == 4s);
    const auto stale = rate.block_steps("t", 8s);
    rate.configure("t", RateType::overall, 9, 10s);
    plan(stale);
    CHECK(error == Errc::config_changed);
    CHECK(rate.peek("t").retry_after == 4s);
    CHECK(user.peek("alice").remaining == 1);
  });
}
