// One plan over limits of different kinds, and one charge for a request that is asked again: on
// every store, in virtual time. Threading: single-threaded.
#include <array>

#include "sluice/extend/idempotency_record.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

struct Limits {
  explicit Limits(Store& store)
      : user{store, "user", Quota::per_second(1).burst(3)},
        account{store, "account", {{4, 5s}, {100, 10min}}},
        jobs{store, "jobs", 2, {.ttl = 30s}},
        gates{store, "api", {"account"}},
        scope(gates.scope("account", "acme")) {}

  [[nodiscard]] std::array<Step, 4> steps(const LeaseId& id, Cost cost = 1) const {
    return {user.acquire_step("alice", cost), account.acquire_step("acme", cost),
            jobs.acquire_step("acme", id), gates.pass_step(scope)};
  }

  TokenBucket user;
  SlidingWindow account;
  ConcurrencyLimiter jobs;
  Gates gates;
  Scope scope;
};

enum Place : std::size_t { of_user, of_account, of_jobs, of_gate };

}  // namespace

TEST_CASE("limits of four kinds are one decision: the culprit is named and nobody else is charged",
          "[composing]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Limits limits(store);
    const auto ask = [&](std::uint64_t id) { return decide(store, limits.steps({0, id})); };
    CHECK(ask(1).allowed);
    CHECK(ask(2).allowed);

    const Decision full = ask(3);  // two jobs run
    CHECK_FALSE(full.allowed);
    CHECK(full.step == of_jobs);
    CHECK(full.retry_after == 30s);
    CHECK(limits.user.peek("alice").remaining == 1);
    CHECK(limits.account.peek("acme").remaining == 2);

    CHECK(limits.jobs.release("acme", {0, 1}));
    CHECK(ask(3).allowed);
    CHECK(limits.jobs.release("acme", {0, 2}));
    const Decision spent = ask(4);  // the user's three are gone
    CHECK(spent.step == of_user);
    CHECK(spent.retry_after == 1s);

    limits.gates.close(limits.scope, 7s);
    const Decision closed = ask(4);  // the latest of the hints
    CHECK(closed.step == of_gate);
    CHECK(closed.retry_after == 7s);
    clock.advance(7s - 1us);
    CHECK(ask(4).step == of_gate);
    clock.advance(1us);
    CHECK(ask(4).allowed);
    CHECK(limits.user.peek("alice").remaining == 2);
    CHECK(limits.account.peek("acme").remaining == 3);
    CHECK(limits.jobs.peek("acme").remaining == 0);
  });
}

TEST_CASE("a plan's hint is the latest of its hints, and exact", "[composing]") {
  Random random("a plan's hint is the latest of its hints, and exact");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    const Limits limits(store);
    std::uint64_t id = 0;
    std::size_t refused = 0;
    for (std::size_t i = scaled(300); i > 0; --i) {
      const auto steps = limits.steps({1, ++id}, 1 + random.below(3));
      std::array<Decision, 4> each;
      std::error_code error;
      const Decision first = decide(store, steps, error, each);
      REQUIRE_FALSE(error);
      if (first.allowed) {
        clock.advance(Span{random.between(0, 2'000'000)});
        if (random.one_in(3)) limits.jobs.release("acme", {1, id});
        if (random.one_in(20)) limits.gates.close(limits.scope, Span{random.between(1, 9'000'000)});
        continue;
      }
      ++refused;
      Span latest{0};
      for (const Decision& decision : each) {
        if (!decision.allowed) latest = std::max(latest, decision.retry_after);
      }
      CHECK(first.retry_after == latest);
      clock.advance(first.retry_after - 1us);
      CHECK_FALSE(decide(store, steps).allowed);
      clock.advance(1us);
      // Exact by iteration: a gate that has just opened paces, a lease that expired may be one of
      // two that are needed.
      Decision again = decide(store, steps);
      for (int turn = 0; !again.allowed && turn < 3; ++turn) {
        clock.advance(again.retry_after);
        again = decide(store, steps);
      }
      CHECK(again.allowed);
    }
    CHECK(refused > 10);
  });
}

TEST_CASE("a request that is asked again under its id is charged once, in every limit of its plan",
          "[composing]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Limits limits(store);
    const RequestId id{7, 9};
    const auto ask = [&] { return decide(store, Plan(limits.steps({0, 1})).idempotent(id)); };
    const Decision first = ask();
    CHECK(first.allowed);
    clock.advance(300ms);
    CHECK(ask() == first);
    CHECK(ask() == first);
    CHECK(limits.account.peek("acme").remaining == 3);
    CHECK(limits.jobs.peek("acme").remaining == 1);
    CHECK(limits.user.peek("alice").remaining == 2);
    CHECK(decide(store, Plan(limits.steps({0, 2})).idempotent({7, 10})).allowed);
    CHECK(limits.account.peek("acme").remaining == 2);
    clock.advance(id_kept_for - 300ms - 1us);
    CHECK(ask() == first);
    clock.advance(1us);
    CHECK(ask().at != first.at);
  });
}

TEST_CASE("a refusal is not remembered under an id", "[composing]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket{store, "api", Quota::per_second(1)};
    CHECK(bucket.try_acquire("alice"));
    const RequestId id{1, 1};
    const Decision refused = bucket.try_acquire("alice", 1, id);
    CHECK_FALSE(refused.allowed);
    CHECK(refused.retry_after == 1s);
    clock.advance(1s);
    CHECK(bucket.try_acquire("alice", 1, id).allowed);
    CHECK(bucket.try_acquire("alice", 1, id).allowed);
    CHECK_FALSE(bucket.try_acquire("alice").allowed);
  });
}

TEST_CASE("a plan of reservations waits for the last of them", "[composing]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlotLock pace{store, "pace", 2s};
    const SlotLock other{store, "other", 5s};
    const auto ask = [&] {
      return decide(store, {pace.acquire_step("acme", 1min), other.acquire_step("acme", 1min)});
    };
    CHECK(ask().retry_after == 0us);
    CHECK(ask().retry_after == 5s);
    CHECK(ask().retry_after == 10s);
    CHECK(ask().allowed);
  });
}

TEST_CASE("a plan's id is not remembered under the key of one of its steps", "[plans]") {
  for_each_store([](Store& store, VirtualClock&) {
    const TokenBucket bucket(store, "bucket", Quota::per_second(10));
    const RequestId id{4, 4};
    const auto name = record_name(id);
    const SlotLock lock(store, "lock", 1s);
    const Key own{"k", {name.data(), name.size()}};
    const std::array steps{bucket.acquire_step("k", 2), lock.acquire_step(own)};
    std::error_code error;
    static_cast<void>(decide(store, Plan(steps).idempotent(id), error));
    CHECK(error == Errc::duplicate_key);
    static_cast<void>(decide(store, Plan(lock.acquire_step(own)).idempotent(id), error));
    CHECK(error == Errc::duplicate_key);
    CHECK(bucket.peek("k").remaining == 10);
    CHECK(lock.peek(own).allowed);
    CHECK(bucket.try_acquire("k", 2, id));
    CHECK(bucket.peek("k").remaining == 8);
  });
}

TEST_CASE("what a plan has reserved is given back in a plan, as if nobody had asked for it",
          "[composing][token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket lumps(store, "lumps", Quota::per_second(10).burst(3),
                            {.refill = Refill::per_interval(1s)});
    const TokenBucket steady(store, "steady", Quota::per_second(10).burst(5));
    REQUIRE(lumps.try_acquire("k", 2));
    REQUIRE(steady.try_acquire("k", 4));
    clock.advance(50ms);
    const Decision lump = lumps.peek("k");
    const Decision drop = steady.peek("k");
    std::array<Word, 6> told{};
    std::error_code error;
    const std::array asks{lumps.reserve_step("k", 2, 5s), steady.reserve_step("k", 3, 5s)};
    std::array<Decision, 2> answers;
    REQUIRE(decide(store, asks, error, answers, told).retry_after == 950ms);
    const Reservation of_lumps = TokenBucket::reservation(answers[0], std::span(told).first(3));
    const Reservation of_steady = TokenBucket::reservation(answers[1], std::span(told).last(3));
    CHECK(of_steady.wait() == 150ms);
    const std::array backs{lumps.refund_step("k", of_lumps, of_lumps.granted),
                           steady.refund_step("k", of_steady, of_steady.granted)};
    REQUIRE(decide(store, backs).allowed);
    CHECK(lumps.peek("k") == lump);
    CHECK(steady.peek("k") == drop);
  });
}
