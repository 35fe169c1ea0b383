// The forms of one call: blocking, error_code, callback, future, co_await and batch, on a store
// that answers from another thread; conformance tests ask others. Threading: as described.
#include "sluice/decide.hpp"

#include <pthread.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/extend/owned_plan.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/conformance/check.hpp"
#include "tests/core/async_store.hpp"
#include "tests/support/task.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Answers one call, when it is told to.
class HoldingStore final : public Store {
 public:
  void execute(const Plan& /*plan*/, Completion done) noexcept override {
    held_.set_value(std::move(done));
  }
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }
  /// Waits for the call.
  [[nodiscard]] Completion asked() { return held_.get_future().get(); }

 private:
  VirtualClock clock_;
  std::promise<Completion> held_;
};

Task await_plan(Store& store, std::span<const Step> steps, Decision& decision) {
  const auto [error, answer] = co_await awaitable_decide(store, steps);
  CHECK_FALSE(error);
  decision = answer;
}

/// Hands everything, the completion as well, to another thread that asks the inner store.
class OnAnotherThread final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    later_.emplace_back([this, owned = OwnedPlan(plan), done = std::move(done)]() mutable {
      inner().execute(owned.view(), std::move(done));
    });
  }
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      later_.emplace_back([this, owned = OwnedPlan(plans[i]), one = std::move(done[i])]() mutable {
        const Plan plan = owned.view();
        inner().execute_batch({&plan, 1}, {&one, 1});
      });
    }
  }

 private:
  std::vector<std::jthread> later_;
};

Task count_until_refused(const TokenBucket& bucket, int& admitted, std::error_code& error) {
  for (;;) {
    const auto [failure, decision] = co_await bucket.awaitable_try_acquire("alice");
    error = failure;
    if (failure || !decision) co_return;
    ++admitted;
  }
}

}  // namespace

TEST_CASE("a store that answers from its thread keeps every promise, in every form of a call",
          "[core][decide]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  AsyncStore store(*inner);
  check_store(store, &clock, 0.1);
}

TEST_CASE("a plan of several steps is awaited, and tells each step's decision", "[core][decide]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  AsyncStore store(*inner);
  const TokenBucket user{store, "user", Quota::per_second(10).burst(5)};
  const TokenBucket all{store, "all", Quota::per_second(10).burst(3)};
  std::array<Decision, 2> each;
  std::error_code error;
  const Decision d =
      decide(store, {user.acquire_step("t", 2), all.acquire_step("t", 3)}, error, each);
  CHECK(d.step == 1);
  CHECK(each[0].remaining == 3);
  CHECK(each[1] == d);
  CHECK(decide(store, {user.acquire_step("t", 4), all.peek_step("t", 0)}, error, each).step == 0);
  CHECK_FALSE(each[0].allowed);
  CHECK(each[1].allowed);
  const std::array steps{all.acquire_step("u"), user.acquire_step("t", 2)};
  Decision awaited;
  await_plan(store, steps, awaited).over.get();
  CHECK(awaited.step == 1);
  CHECK(awaited.remaining == 1);
}

TEST_CASE("many callers block on one store that answers from its thread", "[core][decide]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  AsyncStore store(*inner);
  const TokenBucket bucket{store, "api", Quota::per_day(1).burst(1'000)};
  std::atomic<int> admitted{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      int own = 0;
      for (int j = 0; j < 400; ++j) own += bucket.try_acquire("all") ? 1 : 0;
      admitted += own;
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(admitted == 1'000);
}

TEST_CASE("no form of a call waits for ever on a store that forgets it", "[core][decide]") {
  ForgetfulStore store;
  const TokenBucket bucket{store, "api", Quota::per_second(1)};
  std::error_code error;
  (void)bucket.try_acquire("a", error);
  CHECK(error == Errc::shut_down);
  CHECK_THROWS_AS(bucket.try_acquire("a"), std::system_error);
  CHECK_THROWS_AS(bucket.future_try_acquire("a").get(), std::system_error);
  int calls = 0;
  bucket.try_acquire_then("a", 1, [&](std::error_code e, const Decision&) {
    ++calls;
    CHECK(e == Errc::shut_down);
  });
  CHECK(calls == 1);
  int admitted = 0;
  count_until_refused(bucket, admitted, error).over.get();
  CHECK(admitted == 0);
  CHECK(error == Errc::shut_down);
  const Step step = bucket.acquire_step("a");
  std::vector<Plan> plans(3, Plan(step));
  std::vector<Decision> results(3);
  std::vector<std::error_code> errors(3);
  decide_batch(store, plans, results, errors);
  for (const std::error_code& e : errors) CHECK(e == Errc::shut_down);
}

TEST_CASE("a blocking call on the store's own thread is an error instead of a deadlock",
          "[core][decide]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  AsyncStore store(*inner);
  const TokenBucket bucket{store, "api", Quota::per_second(1).burst(3)};
  std::promise<std::pair<std::error_code, std::error_code>> heard;
  bucket.try_acquire_then("a", 1, [&](std::error_code, const Decision&) {
    std::error_code single;
    (void)bucket.try_acquire("a", single);
    const Step step = bucket.acquire_step("a");
    const Plan plan(step);
    Decision result;
    std::error_code batch;
    decide_batch(store, {&plan, 1}, {&result, 1}, {&batch, 1});
    heard.set_value({single, batch});
  });
  const auto [single, batch] = heard.get_future().get();
  CHECK(single == Errc::would_deadlock);
  CHECK(batch == Errc::would_deadlock);
  CHECK(bucket.peek("a").remaining == 2);
}

TEST_CASE("a store that answers at once may be asked by a thread that another store hands calls to",
          "[core][decide]") {
  const auto memory = make_memory_store();
  OnAnotherThread store(*memory);
  const TokenBucket bucket{store, "api", Quota::per_hour(3)};
  CHECK(bucket.try_acquire("alice").remaining == 2);
  std::array<Decision, 2> each;
  std::error_code error;
  CHECK(decide(store, {bucket.acquire_step("alice"), bucket.acquire_step("bob")}, error, each));
  CHECK(each[0].remaining == 1);
  CHECK(each[1].remaining == 2);
  const std::array steps{bucket.acquire_step("alice"), bucket.acquire_step("alice")};
  const std::array<Plan, 2> plans{steps[0], steps[1]};
  std::array<std::error_code, 2> errors;
  decide_batch(store, plans, each, errors);
  CHECK(each[0].allowed + each[1].allowed == 1);
}

TEST_CASE("a thread that is cancelled gets the answer that it waits for, and ends behind the call",
          "[core][decide]") {
  struct Caller {
    HoldingStore store;
    bool answered = false;
    bool went_on = false;
  };
  const auto run = [](void* self) -> void* {
    auto& mine = *static_cast<Caller*>(self);
    const TokenBucket bucket{mine.store, "api", Quota::per_second(1)};
    ::pthread_cancel(::pthread_self());
    std::error_code error;
    mine.answered = bucket.try_acquire("a", error).allowed && !error;
    ::pthread_testcancel();
    mine.went_on = true;
    return nullptr;
  };
  for (int round = 0; round < 200; ++round) {
    Caller caller;
    pthread_t thread{};
    REQUIRE(::pthread_create(&thread, nullptr, run, &caller) == 0);
    Completion done = caller.store.asked();
    for (int i = 0; i < round; ++i) std::this_thread::yield();  // mostly it sleeps by now
    Outcome outcome;
    outcome.decision.allowed = true;
    done(outcome);
    REQUIRE(::pthread_join(thread, nullptr) == 0);
    CHECK(caller.answered);
    CHECK_FALSE(caller.went_on);
  }
}
