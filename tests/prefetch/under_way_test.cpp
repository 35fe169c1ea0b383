// What is under way when a window ends, a block or a reset comes, is not spent then.
// Threading: single-threaded.
#include <algorithm>
#include <array>

#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"
#include "src/stores/prefetch_account.hpp"
#include "tests/prefetch/rig.hpp"
#include "tests/support/wire_store.hpp"

namespace sluice::test {
namespace {

/// Prefetched units behind which plans and trips are answered at once, unless they are held on the
/// wire.
struct Wired {
  explicit Wired(Span hold = 800ms) : store(wire, {.hold = hold, .most = 100, .recheck = 1h}) {
    wire.holds = [this](const Plan&) { return holding; };
  }

  VirtualClock clock;
  std::unique_ptr<Store> whole = make_virtual_store(clock);
  WireStore wire{*whole};
  PrefetchStore store;
  bool holding = false;
};

/// The answer to a call.
struct Told {
  std::error_code error;
  std::optional<Decision> decision;
  auto note() {
    return [this](std::error_code e, const Decision& d) {
      error = e;
      decision = d;
    };
  }
  [[nodiscard]] bool allowed() const { return decision && decision->allowed && !error; }
};

}  // namespace

TEST_CASE("a plan asks the store for units that may be over before its answer",
          "[prefetch][plan]") {
  Wired rig;
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  const SlidingWindow log(rig.store, "log", {{9, 1h}});
  for (int i = 0; i < 20; ++i) CHECK(bucket.try_acquire("a").allowed);
  const std::array steps{bucket.acquire_step("a"), log.acquire_step("a")};
  std::array<Decision, 2> each{};
  std::error_code error;
  const auto source = [&] {
    CHECK(decide(rig.store, steps, error, each, {}).allowed);
    return each[0].source;
  };
  rig.clock.advance(350ms);
  CHECK(bucket.try_acquire("a").source == Source::prefetched);  // or it would be idle
  rig.clock.advance(350ms);
  CHECK(source() == Source::prefetched);
  rig.clock.advance(Span{1});
  CHECK(source() == Source::virtual_store);
}

TEST_CASE("what is held is not spent once a block or a reset is sent", "[prefetch]") {
  for (const bool block : {true, false}) {
    CAPTURE(block);
    Wired rig;
    const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
    for (int i = 0; i < 20; ++i) CHECK(bucket.try_acquire("a").allowed);
    REQUIRE(rig.store.stats().taken > 20);
    rig.holding = true;
    Told change;
    decide_then(rig.store, block ? bucket.block_step("a", 5s) : bucket.reset_step("a"),
                change.note());
    Told call;
    bucket.try_acquire_then("a", 1, call.note());
    CHECK_FALSE(call.decision);  // the store is asked
    rig.wire.deliver_all();
    CHECK(call.allowed() == !block);
  }
}

TEST_CASE("a caller with less time than the trip that is under way, or that may leave, asks alone",
          "[prefetch]") {
  Wired rig;
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  const Step step = bucket.acquire_step("a");
  rig.holding = true;
  const auto ask = [&](Span within) {
    decide_then(rig.store, Plan(step).within(within),
                [](const std::error_code&, const Decision&) {});
    return rig.wire.pending();
  };
  CHECK(ask(100ms) == 1);
  CHECK(ask(100ms) == 1);
  CHECK(ask(100ms - 1us) == 2);
  const StopSource stop;
  decide_then(rig.store, Plan(step).cancelled_by(stop.get_token()),
              [](const std::error_code&, const Decision&) {});
  CHECK(rig.wire.pending() == 3);
  rig.wire.deliver_all();
}

TEST_CASE("a refusal that is under way when the limit changes is forgotten", "[prefetch]") {
  Wired rig;
  const FixedWindow window(rig.store, "w", 5, Calendar::every(1h));
  for (int i = 0; i < 5; ++i) CHECK(window.try_acquire("a").allowed);
  rig.holding = true;
  Told before;
  window.try_acquire_then("a", 1, before.note());
  rig.wire.decide(0);
  rig.holding = false;
  window.reset("a");
  Told after;
  window.try_acquire_then("a", 1, after.note());
  rig.wire.deliver_all();
  CHECK_FALSE(before.allowed());  // as the store decided before the reset
  CHECK(after.allowed());
  CHECK(window.try_acquire("a").allowed);
}

TEST_CASE("a reservation of a lot is refunded once, whatever others spent of the lot",
          "[prefetch]") {
  PrefetchRig rig({.hold = 10s, .most = 100});
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  CHECK(rig.spend(bucket, 64, 1ms) == 64);
  const TokenBucket none(rig.store, "none", Quota::never());
  // A plan that is refused takes nothing of the lot.
  CHECK_FALSE(decide(rig.store, {bucket.reserve_step("a", 3, 0s), none.acquire_step("a")}).allowed);
  const Reservation grant = bucket.reserve("a", 3, 0s);
  REQUIRE(grant);
  std::error_code error;
  Word spent = 64;
  rig.inner.fail_all(Fault::not_executed(Errc::not_connected));
  for (int i = 0; i < 100; ++i) {
    Reservation copy = grant;
    bucket.cancel("a", copy, error);
    spent += bucket.try_acquire("a", error).allowed ? 1 : 0;
  }
  CHECK(spent <= static_cast<Word>(rig.store.stats().taken));
}

TEST_CASE("a reservation is not refunded as one of a lot after a reset", "[prefetch]") {
  PrefetchRig rig({.hold = 10s, .most = 100});
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  Reservation before = bucket.reserve("a", 3, 0s);
  bucket.reset("a");
  const Reservation after = bucket.reserve("a", 3, 0s);  // of a lot with the same words
  REQUIRE(before);
  REQUIRE(after);
  rig.inner.fail_all(Fault::not_executed(Errc::not_connected));
  std::error_code error;
  bucket.cancel("a", before, error);
  CHECK(error == Errc::not_connected);  // the store decides it
  CHECK_FALSE(bucket.try_acquire("a", error).allowed);
}

TEST_CASE("a caller is refused only by a question for no more than it needs", "[prefetch]") {
  Wired rig;
  const FixedWindow window(rig.store, "w", 1000, Calendar::every(1h));
  const FixedWindow plain(*rig.whole, "w", 1000, Calendar::every(1h));
  for (int i = 0; i < 100; ++i) CHECK(window.try_acquire("a").allowed);
  rig.holding = true;
  std::array<Told, 150> told{};
  for (Told& one : told) window.try_acquire_then("a", 1, one.note());
  const auto waiting =
      std::find_if(told.begin(), told.end(), [](const Told& one) { return !one.decision; });
  REQUIRE(waiting != told.end());
  // Others always take so much that what is asked for is one too many.
  while (rig.wire.pending() > 0) {
    const Word asked = rig.wire.plan(0).steps()[0].args[7];
    const Word left = plain.peek("a").remaining;
    if (asked > 1 && asked <= left) CHECK(plain.try_acquire("a", left - asked + 1).allowed);
    rig.wire.decide(0);
    rig.wire.deliver(0);
  }
  CHECK(waiting->allowed());
}

TEST_CASE("a reservation of several lots is not refunded as another one of its first lot",
          "[prefetch]") {
  using namespace prefetch;
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "api", Quota::per_second(1).burst(1000));
  Account account(bucket.reserve_step("a", 1, 10s), {10s, 100, 1s, true});
  const Time now = to_time(1'000'000'000'000'000);
  const auto add = [&](Word level, Span ahead) {
    const Decision granted{.allowed = true, .retry_after = ahead, .at = now};
    REQUIRE(account.add({.units = 5, .level = level}, granted, now, now) == Account::Added::held);
  };
  add(1, 0s);
  add(2, 5s);
  REQUIRE(account.decide({.cost = 4, .refundable = true}, now));
  const auto mixed = account.decide({.cost = 4, .max_wait = 5'000'000, .refundable = true}, now);
  REQUIRE(mixed);
  REQUIRE(mixed->verdict.retry_after == 5'000'000);  // of a unit for now, and three for then
  CHECK_FALSE(account.refund({.amount = 4, .level = 1, .stamp = 0, .version = 0}));
  CHECK_FALSE(account.can_spend(1, now));
}

TEST_CASE("units of several lots that a plan did not use count no longer than any of them",
          "[prefetch][plan]") {
  using namespace prefetch;
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "api", Quota::per_second(1).burst(1000));
  const Time start = to_time(1'000'000'000'000'000);
  const auto check = [&](Span first, Span second, Word later) {
    CAPTURE(first.count(), second.count());
    Account account(bucket.reserve_step("a", 1, 10s), {10s, 100, 1s, true});
    for (const Span ahead : {first, second}) {
      const Decision granted{.allowed = true, .retry_after = ahead, .at = start};
      REQUIRE(account.add({.units = 5}, granted, start, start) == Account::Added::held);
    }
    const Time now = start + 6s;
    REQUIRE(account.take(4, now));
    const auto plan = account.decide({.cost = 3}, now);
    REQUIRE(plan);
    CHECK(plan->until == start + 10s);  // of one unit of the first lot, and two of the second
    CHECK(account.restore(plan->lot->number, {.cost = 3}, start + 10s) == 0);
    CHECK(account.can_spend(6, start + 10s - Span{1}));
    CHECK_FALSE(account.can_spend(later + 1, start + 10s));
    CHECK(account.can_spend(later, start + 10s));
  };
  check(5s, 0s, 0);
  check(0s, 5s, 3);
}

TEST_CASE("a store that ends while a plan is under way leaves it to the store behind",
          "[prefetch][plan]") {
  VirtualClock clock;
  const auto whole = make_virtual_store(clock);
  WireStore wire(*whole);
  std::optional<PrefetchStore> store;
  store.emplace(wire, PrefetchStoreOptions{.hold = 10s, .most = 100});
  wire.holds = [](const Plan& plan) {
    return plan.steps()[0].operation->kind == StateKind::sliding_window;
  };
  const TokenBucket bucket(*store, "api", Quota::per_hour(1).burst(1000));
  const SlidingWindow log(*store, "log", {{1, 1h}});
  for (int i = 0; i < 20; ++i) CHECK(bucket.try_acquire("a").allowed);
  const std::array steps{bucket.acquire_step("a"), log.acquire_step("a")};
  Told told;
  decide_then(*store, steps, told.note());
  REQUIRE(wire.pending() == 1);
  store.reset();
  CHECK(told.error == Errc::unknown);
  wire.deliver_all();
}

}  // namespace sluice::test
