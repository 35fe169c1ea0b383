// What a program may get wrong without noticing: a plan for another store, a store or a clock that
// ends too early, numbers that do not fit. What does not compile at all is in tests/compile.
// Threading: single-threaded.
#include <array>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

const Quota quota = Quota::per_second(10);

/// What the completion of a call is told.
struct Told {
  std::error_code error;
  Decision decision;
};
Told then(Store& store, const Plan& plan) {
  Told told;
  decide_then(store, plan, [&](const Outcome& outcome) {
    told = {outcome.error, outcome.decision};
  });
  return told;
}

template <class Body>
std::error_code error_of(Body body) {
  try {
    body();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return {};
}

}  // namespace

TEST_CASE("a plan for another store than that of its limiters is an error, in every form",
          "[core][traps]") {
  VirtualClock clock;
  const auto mine = make_memory_store();
  const auto other = make_virtual_store(clock);
  const TokenBucket a(*mine, "a", quota);
  const TokenBucket b(*other, "b", quota);
  const std::array mixed{a.acquire_step("k"), b.acquire_step("k")};
  const auto check = [](Store& store, const Plan& plan, int step) {
    const auto is_told = [&](const Told& told) {
      CHECK(told.error == Errc::other_store);
      CHECK(told.error == Failure::not_executed);
      CHECK_FALSE(told.decision.allowed);
      CHECK(told.decision.step == step);
    };
    Told told;
    told.decision = decide(store, plan, told.error);
    is_told(told);
    std::array<Decision, 2> each;
    told.decision = decide(store, plan, told.error, each);
    is_told(told);
    is_told(then(store, plan));
    CHECK(error_of([&] { static_cast<void>(decide(store, plan)); }) == Errc::other_store);
    CHECK(error_of([&] { future_decide(store, plan).get(); }) == Errc::other_store);
  };
  const Step of_a = a.acquire_step("k");
  check(*mine, mixed, 1);
  check(*other, mixed, 0);
  check(*other, of_a, 0);
  CHECK_THROWS_WITH(decide(*mine, mixed), sluice::test::contains_text("step 1"));

  // A plan is a view of its steps.
  const std::array steps{a.acquire_step("k"), a.acquire_step("k", 2), b.acquire_step("k")};
  const std::array batch{Plan(steps[0]), Plan(mixed), Plan(steps[1]), Plan(steps[2])};
  std::array<Decision, 4> results;
  std::array<std::error_code, 4> errors;
  decide_batch(*mine, batch, results, errors);
  const std::error_code other_store = Errc::other_store;
  CHECK(errors == std::array<std::error_code, 4>{{{}, other_store, {}, other_store}});
  CHECK(results[2].remaining == 7);  // of 10: nothing else was charged
  CHECK(b.peek("k").remaining == 10);
}

TEST_CASE("every limiter's steps know their store, and a decorator passes them on",
          "[core][traps]") {
  const auto inner = make_memory_store();
  const auto other = make_memory_store();
  CircuitBreaker breaker(inner->clock());
  FallbackStore outer(*inner, breaker, FailurePolicy::closed());
  const Gates gates(outer, "gates", {"kind"});
  const Scope scope = gates.scope("kind", "id");
  const UtilizationShedder shedder(outer, "shedder");
  const FleetShedder fleet(outer, "fleet", 5, {{"all", FleetShare::percent(100)}});
  const SharedSlidingWindow rate(outer, "rate");
  rate.configure("tag", RateType::overall, 5, 1s);
  const auto rates = rate.acquire_steps("tag");
  const TokenBucket bucket(outer, "b", quota);
  const SharedTokenBucket shared(outer, "s");
  const SlidingWindow log(outer, "w", {{5, 1s}});
  const SlidingWindowCounter counter(outer, "c", {5, 1s});
  const FixedWindow window(outer, "f", 5, Calendar::every(1min));
  const SlotLock lock(outer, "l", 1us);
  const ConcurrencyLimiter jobs(outer, "j", 5);
  const std::array steps{bucket.acquire_step(1),
                         shared.acquire_step(1),
                         log.acquire_step(1),
                         counter.acquire_step(1),
                         window.acquire_step(1),
                         lock.acquire_step(1),
                         jobs.acquire_step(1, LeaseId{1, 2}),
                         fleet.acquire_step("all", 1, LeaseId{1, 2}),
                         shedder.acquire_step(1, shedder.tier("sheddable")),
                         gates.pass_step(scope),
                         gates.open_step(scope),
                         rates[0],
                         rates[1]};
  for (const Step& step : steps) {
    INFO(step.operation->name);
    CHECK(step.store == &outer);
    std::error_code error;
    CHECK_FALSE(decide(*other, step, error));
    CHECK(error == Errc::other_store);
    static_cast<void>(decide(*inner, step, error));
    CHECK(error == Errc::other_store);
  }
  CHECK(decide(outer, rates));
  CHECK(decide(outer, {gates.pass_step(scope), window.acquire_step("w")}));
}

TEST_CASE("a borrowed store that has ended fails the calls of its limiters", "[core][traps]") {
  auto store = std::make_optional(make_memory_store());
  const TokenBucket bucket(**store, "b", quota);
  const ConcurrencyLimiter jobs(**store, "j", 5);
  const Gates gates(**store, "g", {"kind"});
  const Scope scope = gates.scope("kind", "id");
  const TokenBucket copy = bucket;
  const BoundTokenBucket bound = bucket.at("k");
  const Claim claim(bucket, "k");
  const Step step = bucket.acquire_step("k");
  REQUIRE(bucket.try_acquire("k"));
  store.reset();
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { (void)bucket.try_acquire("k"); }, [&] { (void)copy.acquire("k", 1, 1s); },
           [&] { (void)bound.try_acquire(); }, [&] { (void)jobs.try_acquire("k"); },
           [&] { (void)jobs.acquire("k", 1, 1s); }, [&] { (void)gates.pass(scope); },
           [&] { (void)acquire(std::array{claim}, 1s); },
           [&] { (void)bucket.future_try_acquire("k").get(); },
           [&] { (void)decide(bucket.store(), step); }}) {
    CHECK(error_of(call) == Errc::shut_down);
  }
  CHECK(bucket.store().clock().now() > Time{});
}

TEST_CASE("a waiter outlives neither the store of a limiter that has gone, nor crashes",
          "[core][traps]") {
  std::optional<TokenBucket> bucket(std::in_place, make_memory_store(), "b", quota);
  const Claim claim(*bucket, "k");  // does not own the store
  bucket.reset();
  CHECK(error_of([&] { (void)acquire(std::array{claim}, 1s); }) == Errc::shut_down);
}

TEST_CASE("a store whose clock has ended fails its calls", "[core][traps]") {
  auto clock = std::make_optional<VirtualClock>();
  const auto simulated = make_virtual_store(*clock);
  const auto memory = make_memory_store({.clock = &*clock});
  const TokenBucket one(*simulated, "b", quota);
  const TokenBucket two(*memory, "b", quota);
  const BoundTokenBucket bound = two.at("k");
  const FixedWindow window(*memory, "f", 5, Calendar::every(1min));
  REQUIRE(one.try_acquire("k"));
  REQUIRE(bound.try_acquire());
  clock.reset();
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { (void)one.try_acquire("k"); }, [&] { (void)one.acquire("k", 1, 1s); },
           [&] { (void)two.try_acquire("k"); },
           [&] {
             (void)two.try_acquire("k", 1, RequestId{1, 2});
           },
           [&] { (void)bound.try_acquire(); }, [&] { (void)window.try_acquire("k"); }}) {
    CHECK(error_of(call) == Errc::shut_down);
  }
  const Step step = two.acquire_step("k");
  const std::array plans{Plan(step), Plan(step)};
  std::array<Decision, 2> results;
  std::array<std::error_code, 2> errors;
  decide_batch(*memory, plans, results, errors);
  CHECK(errors[1] == Errc::shut_down);
}

namespace {

// Destroyed in the reverse order: the limiter first asks, and then finds its store gone.
struct AsksAtTheEnd {
  ~AsksAtTheEnd() {
    std::error_code error;
    if (bucket && (bucket->try_acquire("k", error) || error != Errc::shut_down)) std::abort();
  }
  std::optional<TokenBucket> bucket;
};
AsksAtTheEnd asks_at_the_end;
NewStore<MemoryStore> ends_before_it;

}  // namespace

TEST_CASE("a static limiter whose static store is destroyed before it is told so",
          "[core][traps]") {
  ends_before_it = make_memory_store();
  asks_at_the_end.bucket.emplace(*ends_before_it, "b", quota);
  CHECK(asks_at_the_end.bucket->try_acquire("k"));
  // The rest happens at the end of the program, which it would abort.
}

TEST_CASE("a cost beyond the range is not a negative one", "[core][traps]") {
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "b", quota);
  for (const auto cost : {std::numeric_limits<std::uint64_t>::max(), std::uint64_t{1} << 63}) {
    std::error_code error;
    CHECK_FALSE(bucket.try_acquire("k", cost, error));
    CHECK((error == Errc::invalid_cost || error == Errc::cost_exceeds_capacity));
    CHECK_THROWS_WITH(bucket.try_acquire("k", cost), !sluice::test::contains_text("-1"));
    CHECK(error_of([&] { bucket.reward("k", cost); }) == Errc::invalid_cost);
    CHECK(error_of([&] { bucket.penalize("k", cost); }) == Errc::invalid_cost);
    Reservation reservation = bucket.reserve("k", 1, 0s);
    CHECK(error_of([&] { bucket.settle("k", reservation, cost); }) == Errc::invalid_cost);
  }
}

TEST_CASE("spans finer than a microsecond are rounded up, and long ones do not overflow",
          "[core][traps]") {
  CHECK(Span(SpanArg(1ns)) == 1us);
  CHECK(Span(SpanArg(1000ns)) == 1us);
  CHECK(Span(SpanArg(1001ns)) == 2us);
  CHECK(Span(SpanArg(0ns)) == 0us);
  CHECK(Span(SpanArg(-1ns)) == 0us);
  CHECK(Span(SpanArg(-1001ns)) == -1us);
  CHECK(SpanArg(2000ns).is_exact());
  CHECK_FALSE(SpanArg(2001ns).is_exact());
  CHECK(Span(SpanArg(std::chrono::hours::max())) == Span::max());
  CHECK(Span(SpanArg(std::chrono::hours::min())) == Span::min());
  CHECK(Span(SpanArg(std::chrono::duration<std::uint64_t>::max())) == Span::max());
  CHECK(Span(SpanArg(std::chrono::duration<std::uint64_t, std::nano>::max())) == Span::max());
  CHECK(Span(SpanArg(std::chrono::duration<std::int8_t>(3))) == 3s);
  VirtualClock clock;
  CHECK(Deadline(1500ns).on(clock) == clock.now() + 2us);
  CHECK(Quota::per(5, 1'000'000'000ns) == Quota::per_second(5));
  CHECK_THROWS_WITH(Quota::per(5, 1500ns), sluice::test::contains_text("whole number of micro"));
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "b", quota);
  REQUIRE(bucket.try_acquire("k", 10));
  CHECK_FALSE(bucket.reserve("k", 1, 99'999'000ns));
  CHECK(bucket.reserve("k", 1, 99'999'001ns));
}

TEST_CASE("a call takes a key of a temporary, and another key than that of the next",
          "[core][traps]") {
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "b", quota);
  const std::string id = "an id that no short string holds";
  CHECK(bucket.try_acquire("user-" + id, 4).remaining == 6);
  CHECK(bucket.try_acquire("resu-" + id, 3).remaining == 7);
  CHECK(bucket.try_acquire({"user-" + id, "uploads-" + id}, 2).remaining == 8);
  CHECK(bucket.peek("user-" + id).remaining == 6);
  CHECK(bucket.at("user-" + id).peek().remaining == 6);
  CHECK(acquire({{bucket, "user-" + id, 2}}, 1s).decision().allowed);
  CHECK(bucket.peek(Key("user-an id that no short string holds")).remaining == 4);
}

TEST_CASE("a listener that throws ends nothing", "[core][traps]") {
  VirtualClock clock;
  int told = 0;
  CircuitBreaker breaker(clock, {.failures = 1}, [&](CircuitBreaker::State, CircuitBreaker::State) {
    ++told;
    throw std::runtime_error("a listener's own");
  });
  breaker.answer(breaker.ask(), CircuitBreaker::Result::failure);
  CHECK(told == 1);
  CHECK(breaker.state() == CircuitBreaker::State::open);
}
