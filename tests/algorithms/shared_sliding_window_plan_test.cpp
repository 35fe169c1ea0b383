// A shared sliding window in plans, under ids and in every form of a call, on every store.
// Threading: single-threaded, but for what the store completes.
#include <array>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"
#include "tests/support/task.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

Task await_permits(const SharedSlidingWindow& limiter, Cost permits, Answer& answer) {
  answer = co_await limiter.awaitable_try_acquire("api", permits);
}

}  // namespace

TEST_CASE("a shared sliding window is decided in one plan with other limits, all or nothing",
          "[shared_sliding_window][composing]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow partner(store, "rate");
    const TokenBucket user(store, "user", Quota::per_minute(3).burst(3));
    partner.configure("partner", RateType::overall, 2, 10s, SpentUnits::forgotten);
    const auto ask = [&](Cost permits) {
      const auto rate = partner.acquire_steps("partner", permits);
      CHECK(rate.size() == 2);
      return decide(store, std::array{user.acquire_step("alice"), rate[0], rate[1]});
    };
    CHECK(ask(1).allowed);
    clock.advance(1s);
    const Decision refused = ask(2);
    CHECK_FALSE(refused.allowed);
    CHECK(refused.step == 2);
    CHECK(refused.retry_after == 9s);
    CHECK(user.peek("alice").remaining == 2);
    CHECK(ask(1).allowed);
    clock.advance(10s);
    CHECK(ask(1).allowed);
    const Decision spent = ask(1);
    CHECK(spent.step == 0);
    CHECK(partner.peek("partner").remaining == 1);
    CHECK(decide(store, partner.peek_steps("partner", 1)).remaining == 1);
    CHECK(decide(store, partner.acquire_steps("partner", 1)).allowed);
    CHECK_FALSE(decide(store, partner.peek_steps("partner", 1)).allowed);
  });
}

TEST_CASE("steps of a rate that was changed charge nothing and say so, and new ones serve",
          "[shared_sliding_window][composing]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow here(store, "rate");
    const SharedSlidingWindow there(store, "rate");
    const TokenBucket user(store, "user", Quota::per_minute(3).burst(3));
    std::error_code error;
    CHECK(here.acquire_steps("api", 1, error).size() == 0);
    CHECK(error == Errc::not_configured);
    CHECK_THROWS_AS(here.acquire_steps("api"), std::system_error);
    CHECK_THROWS_AS(here.refresh("api"), std::system_error);
    here.configure("api", RateType::overall, 2, 10s, SpentUnits::forgotten);

    const auto stale = here.acquire_steps("api", 2);
    there.configure("api", RateType::overall, 5, 10s);
    const auto ask = [&](const SharedSlidingWindowSteps& rate) {
      return decide(store, std::array{user.acquire_step("alice"), rate[0], rate[1]}, error);
    };
    ask(stale);
    CHECK(error == Errc::config_changed);
    CHECK(user.peek("alice").remaining == 3);
    CHECK(here.peek("api").remaining == 5);
    there.configure("api", RateType::overall, 6, 10s);
    here.refresh("api");
    CHECK(ask(here.acquire_steps("api", 6)).allowed);
    CHECK(user.peek("alice").remaining == 2);
    there.configure("api", RateType::overall, 9, 10s, SpentUnits::forgotten);
    CHECK(here.acquire_steps("api", 9).size() == 2);  // more than it remembers: it looks
    CHECK(ask(here.acquire_steps("api", 9)).allowed);
    ask(here.acquire_steps("api", 10));
    CHECK(error == Errc::cost_exceeds_capacity);
  });
}

TEST_CASE("steps keep what they view, whatever their limiter learns meanwhile",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("api", RateType::overall, 2, 10s, SpentUnits::forgotten);
    SharedSlidingWindowSteps steps = limiter.acquire_steps("api", 1);
    limiter.configure("api", RateType::overall, 3, 10s, SpentUnits::forgotten);
    limiter.refresh("api");
    std::error_code error;
    static_cast<void>(decide(store, steps, error));
    CHECK(error == Errc::config_changed);
    steps = limiter.acquire_steps("api", 1);
    CHECK(decide(store, steps).remaining == 2);
  });
}

TEST_CASE("permits asked again under their id are charged once, also after an update",
          "[shared_sliding_window][composing]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow here(store, "rate");
    const SharedSlidingWindow there(store, "rate");
    here.configure("api", RateType::overall, 3, 1min, SpentUnits::forgotten);
    const RequestId id{4, 5};
    const Decision first = here.try_acquire("api", 2, id);
    CHECK(first.allowed);
    CHECK(first.remaining == 1);
    clock.advance(1s);
    CHECK(here.try_acquire("api", 2, id) == first);
    CHECK(there.try_acquire("api", 2, id) == first);
    there.configure("api", RateType::overall, 5, 1min);
    CHECK(here.try_acquire("api", 2, id) == first);
    CHECK(there.try_acquire("api", 2, id) == first);
    CHECK(here.peek("api").remaining == 3);
    std::error_code error;
    CHECK(here.try_acquire("api", 3, {4, 6}, error).allowed);
    CHECK_FALSE(here.try_acquire("api", 1, {4, 7}).allowed);
    clock.advance(1min);
    CHECK(here.try_acquire("api", 1, {4, 7}).allowed);  // a refusal is not remembered
    CHECK(here.peek("api").remaining == 4);
  });
}

TEST_CASE("steps without a setting are no plan, and permits below zero an error",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow limiter(store, "rate");
    std::error_code error;
    const SharedSlidingWindowSteps none = limiter.acquire_steps("api", 1, error);
    static_cast<void>(decide(store, none, error));
    CHECK(error == Errc::invalid_plan);
    limiter.configure("api", RateType::overall, 2, 10s, SpentUnits::forgotten);
    static_cast<void>(decide(store, limiter.acquire_steps("api", -1), error));
    CHECK(error == Errc::invalid_cost);
  });
}

TEST_CASE("callbacks, futures and coroutines follow a change of the rate",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow here(store, "rate");
    const SharedSlidingWindow there(store, "rate");
    CHECK_THROWS_AS(here.future_try_acquire("api").get(), std::system_error);
    Answer answer;
    await_permits(here, 1, answer).over.get();
    CHECK(answer.error == Errc::not_configured);

    for (Word rate = 3; rate <= 5; ++rate) {  // each another rate than the one it remembers
      there.configure("api", RateType::overall, rate, 1min, SpentUnits::forgotten);
      std::promise<Decision> called;
      here.try_acquire_then("api", 1, [&](std::error_code error, const Decision& decision) {
        CHECK_FALSE(error);
        called.set_value(decision);
      });
      const Decision d = called.get_future().get();
      CHECK(d.remaining == rate - 1);
      CHECK(d.limit == rate);
      CHECK(d.step == 0);
      there.configure("api", RateType::overall, rate + 1, 1min);
      CHECK(here.future_try_acquire("api", 2).get().remaining == rate - 2);
      there.configure("api", RateType::overall, rate + 2, 1min);
      await_permits(here, rate - 1, answer).over.get();
      CHECK_FALSE(answer.error);
      CHECK(answer.decision.remaining == 0);
      await_permits(here, 1, answer).over.get();
      CHECK_FALSE(answer.decision.allowed);
      CHECK(answer.decision.retry_after == 1min);
      await_permits(here, rate + 3, answer).over.get();
      CHECK(answer.error == Errc::cost_exceeds_capacity);
    }
  });
}
