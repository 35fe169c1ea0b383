// The calls of a shared sliding window: its keys, what it remembers of each, its reservations when
// the configuration has changed, plans, ids and every form of a call, on every store.
// Threading: single-threaded, but for what the store completes.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"
#include "tests/support/task.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

class CountingStore final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    ++calls_;
    StoreWrapper::execute(plan, std::move(done));
  }
  /// The calls that `call` makes.
  template <class Call>
  int during(const Call& call) {
    calls_ = 0;
    call();
    return calls_;
  }

 private:
  int calls_ = 0;
};

constexpr auto forgotten = SpentUnits::forgotten;

Task await_units(const SharedSlidingWindow& limiter, const char* key, Cost units, Answer& answer) {
  answer = co_await limiter.awaitable_try_acquire(key, units);
}

}  // namespace

TEST_CASE("each key has a rate and a log of its own, and a key without a name the limiter's",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow limiter(store, "rate");
    limiter.configure("a", RateType::overall, 3, 1min, forgotten);
    limiter.configure("b", RateType::overall, 5, 1min, forgotten);
    limiter.configure({"a", "other"}, RateType::overall, 7, 1min, forgotten);
    limiter.configure(42, RateType::overall, 9, 1min, forgotten);
    CHECK(limiter.try_acquire("a").limit == 3);
    CHECK(limiter.try_acquire("b", 2).remaining == 3);
    CHECK(limiter.try_acquire({"a", "other"}).remaining == 6);
    CHECK(limiter.try_acquire(42, 2).remaining == 7);
    CHECK(limiter.try_acquire("42").remaining == 6);
    CHECK(limiter.peek("a").remaining == 2);
    CHECK(limiter.try_acquire({"a", "rate"}).remaining == 1);
    const SharedSlidingWindow named(store, "other");
    CHECK(named.try_acquire("a", 6).remaining == 0);
    CHECK(limiter.configuration("a")->rate == 3);
    limiter.refresh("b");
    CHECK(limiter.acquire_steps("a")[1].args[0] == 3);
    std::error_code error;
    CHECK_FALSE(limiter.try_acquire("c", error));
    CHECK(error == Errc::not_configured);
    CHECK_FALSE(limiter.configuration("c"));
  });
}

TEST_CASE("the state lies under the key, and its log beside it", "[shared_sliding_window]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const SharedSlidingWindow limiter(*store, "rate", {.client = "me"});
  const Word version = limiter.configure("api", RateType::overall, 3, 1s).version;
  const auto keys = [&] {
    const auto steps = limiter.acquire_steps("api");
    return std::pair(render(steps[0].key), render(steps[1].key));
  };
  const std::string log = "{api}:rate%3agrants%3a";
  CHECK(keys() == std::pair(std::string("{api}:rate"), log + std::to_string(version)));
  const Word next = limiter.configure("api", RateType::per_client, 3, 1s).version;
  limiter.refresh("api");
  CHECK(keys() == std::pair(std::string("{api}:rate"), log + std::to_string(next) + "%3ame"));
}

TEST_CASE("a limiter remembers the rates of 1,024 keys, and reads another one again",
          "[shared_sliding_window]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  CountingStore store(*inner);
  const SharedSlidingWindow limiter(store, "rate");
  std::vector<int> keys;
  for (int key = 0; key <= 1'024; ++key) {
    limiter.configure(key, RateType::overall, 9, 1min);
    keys.push_back(key);
  }
  const auto calls_of = [&](int key) {
    return store.during([&] { CHECK(limiter.try_acquire(key)); });
  };
  for (int key = 0; key < 1'024; ++key) REQUIRE(calls_of(key) == 2);
  for (int key = 0; key < 1'024; ++key) REQUIRE(calls_of(key) == 1);
  CHECK(calls_of(1'024) == 2);  // and one of the others has to go
  CHECK(calls_of(1'024) == 1);
  int forgotten_keys = 0;
  for (int key = 0; key < 1'024; ++key) {
    const int calls = store.during([&] { (void)limiter.block(key, 0s); });
    forgotten_keys += calls - 1;
  }
  CHECK(forgotten_keys >= 1);
  CHECK(calls_of(1'023) <= 2);
}

TEST_CASE("a rate that is changed behind each look at it is followed fifteen times",
          "[shared_sliding_window]") {
  /// Before each request with a rate, somebody changes that.
  class Changing final : public StoreWrapper {
   public:
    using StoreWrapper::StoreWrapper;
    void execute(const Plan& plan, Completion done) noexcept override {
      if (plan.steps().size() > 1 && left > 0) {
        elsewhere.configure("a", RateType::overall, 100 + left--, 1min);
      }
      StoreWrapper::execute(plan, std::move(done));
    }
    Word left = 0;
    const SharedSlidingWindow elsewhere{inner(), "rate"};
  };
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  Changing store(*inner);
  store.elsewhere.configure("a", RateType::overall, 9, 1min);
  const SharedSlidingWindow limiter(store, "rate");
  store.left = 15;
  CHECK(limiter.try_acquire("a").limit == 101);
  store.left = 16;
  CHECK(error_of([&](auto& e) { return limiter.try_acquire("a", e); }) == Errc::config_changed);
  CHECK(limiter.peek("a").remaining == 100);
}

TEST_CASE("copies share what they know, and are one client", "[shared_sliding_window]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  CountingStore store(*inner);
  SharedSlidingWindow limiter(store, "rate");
  limiter.configure("a", RateType::per_client, 3, 1min);
  const SharedSlidingWindow copy = limiter;
  CHECK(store.during([&] { CHECK(limiter.try_acquire("a", 2)); }) == 2);
  CHECK(store.during([&] { CHECK_FALSE(copy.try_acquire("a", 2)); }) == 1);
  CHECK(copy.client() == limiter.client());
  const SharedSlidingWindow moved = std::move(limiter);
  CHECK(store.during([&] { CHECK(moved.try_acquire("a", 1)); }) == 1);

  // NOLINTBEGIN(bugprone-use-after-move)
  std::error_code error;
  CHECK_FALSE(limiter.try_acquire("a", error));
  CHECK(error == Errc::invalid_key);
  Reservation none;
  CHECK(limiter.cancel("a", none, error) == 0);
  CHECK(limiter.acquire_steps("a", 1, error).size() == 0);
  CHECK(error == Errc::invalid_key);
  CHECK_FALSE(limiter.acquire("a", 1, 1s, {}, error));
  CHECK(error == Errc::invalid_key);
  CHECK(limiter.peek({"a", "rate"}).remaining == 0);
  // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE("a reservation is given back by any client, whatever it knows of the rate",
          "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow here(store, "rate");
    const SharedSlidingWindow there(store, "rate");
    here.configure("a", RateType::overall, 4, 10s, forgotten);
    CHECK(there.peek("a").remaining == 4);
    here.configure("a", RateType::overall, 6, 10s, forgotten);
    Reservation held = here.reserve("a", 5);
    CHECK(there.refund("a", held, 2) == 2);  // it knew the log before
    CHECK(held.granted == 3);
    here.configure("a", RateType::overall, 8, 5s);
    CHECK(there.settle("a", held, 2).refunded == 1);  // and the rate before
    CHECK(there.peek("a").remaining == 6);
    const SharedSlidingWindow stranger(store, "rate");
    clock.advance(1us);
    CHECK(stranger.settle("a", held, 4).charged == 2);  // and this one nothing
    CHECK(held.settled == 2);
    CHECK(here.peek("a").remaining == 4);
    CHECK(SharedSlidingWindow(store, "rate").cancel("a", held) == 2);
    CHECK(here.peek("a").remaining == 6);  // two were charged
    CHECK(held.granted == 0);
  });
}

TEST_CASE("nothing comes back of a log that is not in use any more", "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow here(store, "rate", {.client = "here", .keep_alive = 1h});
    const SharedSlidingWindow there(store, "rate", {.client = "there", .keep_alive = 1h});
    here.configure("a", RateType::overall, 4, 10s, forgotten);
    Reservation before = here.reserve("a", 3);
    Reservation also = before;
    there.configure("a", RateType::overall, 4, 10s, forgotten);
    REQUIRE(there.try_acquire("a", 3));
    CHECK(here.cancel("a", before) == 0);
    CHECK(before.granted == 0);
    CHECK(there.cancel("a", also) == 0);
    CHECK(there.peek("a").remaining == 1);

    Reservation all = here.reserve("a", 1);
    there.configure("a", RateType::per_client, 4, 10s);
    REQUIRE(here.try_acquire("a", 1));
    CHECK(here.settle("a", all, 0).refunded == 0);
    CHECK(here.peek("a").remaining == 3);

    here.configure("b", RateType::overall, 4, 10s, forgotten);
    REQUIRE(here.try_acquire("b", 2));
    REQUIRE(here.try_acquire("a", 2));
    Reservation late = here.reserve("b", 1);
    clock.advance(1h);
    std::error_code error;
    CHECK(here.refund("b", late, 1, error) == 0);  // there is no rate any more
    CHECK_FALSE(error);
    CHECK(late.granted == 0);
    late.granted = 1;
    CHECK(there.cancel("b", late, error) == 0);
    CHECK_FALSE(error);
    late.granted = 1;
    CHECK(here.settle("b", late, 3, error).charged == 0);
    CHECK_FALSE(error);
    CHECK(late.settled == 0);
  });
}

TEST_CASE("what a plan of other limits was granted can be given back", "[shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow limiter(store, "rate");
    const TokenBucket bucket(store, "bucket", Quota::per_minute(5).burst(5));
    limiter.configure("a", RateType::overall, 4, 10s, forgotten);
    const auto rate = limiter.acquire_steps("a", 3);
    std::array<Decision, 3> each;
    std::error_code error;
    const std::array steps{bucket.acquire_step("a"), rate[0], rate[1]};
    std::array<Word, 4> output{};
    REQUIRE(decide(store, steps, error, each, output));
    Reservation held = rate.reservation(each[2], output);
    CHECK(held.granted == 3);
    CHECK(limiter.peek("a").remaining == 1);
    CHECK(limiter.settle("a", held, 1).refunded == 2);
    CHECK(limiter.peek("a").remaining == 3);
    CHECK(limiter.cancel("a", held) == 1);
    CHECK(decide(store, limiter.acquire_steps("a", 4), error, each));
    CHECK_FALSE(decide(store, rate, error, std::span(each).first(2)));
    held = rate.reservation(each[1], {});
    CHECK(held.granted == 0);
    CHECK(limiter.cancel("a", held) == 0);
  });
}

TEST_CASE("a call that is answered late views nothing of its caller", "[shared_sliding_window]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  testing::FaultyStore store(*inner);
  const SharedSlidingWindow there(*inner, "rate");
  for (const char* key : {"a long key that is on the heap", "b"}) {
    there.configure(key, RateType::overall, 3, 1min);
  }
  store.fail_all(testing::Fault::none().late(1ms));
  std::vector<Word> left;
  std::future<Decision> future;
  Answer answer;
  std::future<void> over;
  {
    const SharedSlidingWindow limiter(store, "rate");
    const auto note = [&](std::error_code error, const Decision& d) {
      CHECK_FALSE(error);
      left.push_back(d.remaining);
    };
    limiter.try_acquire_then(std::string("a long key that is ") + "on the heap", 1, note);
    future = limiter.future_try_acquire(std::string("a long key that is ") + "on the heap", 1);
    over = await_units(limiter, "b", 2, answer).over;
  }
  for (const char* key : {"a long key that is on the heap", "b"}) {
    there.configure(key, RateType::overall, 5, 1min);  // the other rate was read before
  }
  for (int i = 0; i < 9; ++i) clock.advance(1ms);
  over.get();
  CHECK(left == std::vector<Word>{4});
  CHECK(future.get().remaining == 3);
  CHECK(answer.decision.remaining == 3);
}

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
    there.configure("api", RateType::overall, 6, 1min);  // of which `here` learns as it asks
    CHECK(here.try_acquire("api", 1, {4, 8}).remaining == 3);
    CHECK(there.try_acquire("api", 1, {4, 8}).remaining == 3);
    std::error_code error;
    CHECK(here.try_acquire("api", 3, {4, 6}, error).allowed);
    CHECK_FALSE(here.try_acquire("api", 1, {4, 7}).allowed);
    clock.advance(1min);
    CHECK(here.try_acquire("api", 1, {4, 7}).allowed);  // a refusal is not remembered
    CHECK(here.peek("api").remaining == 5);
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
    await_units(here, "api", 1, answer).over.get();
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
      await_units(here, "api", rate - 1, answer).over.get();
      CHECK_FALSE(answer.error);
      CHECK(answer.decision.remaining == 0);
      await_units(here, "api", 1, answer).over.get();
      CHECK_FALSE(answer.decision.allowed);
      CHECK(answer.decision.retry_after == 1min);
      await_units(here, "api", rate + 3, answer).over.get();
      CHECK(answer.error == Errc::cost_exceeds_capacity);
    }
  });
}
