// What a limiter answers that was moved from. Threading: single-threaded.
#include <latch>
#include <thread>
#include <utility>

#include "sluice/sluice.hpp"
#include "tests/algorithms/charged.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// Each call but those by keys with a name of their own ends in Errc::invalid_key; with such a key
/// none crashes.
template <class L>
void check_moved_from(L from) {
  INFO(L::type_name);
  const L to = std::move(from);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  const auto calls = [&](const Key& key, bool fail) {
    const auto check = [&](const std::error_code& error) {
      INFO(error.message());
      CHECK((!fail || error == Errc::invalid_key));
    };
    std::error_code error;
    (void)from.try_acquire(key, error);
    check(error);
    (void)from.peek(key, error);
    check(error);
    (void)from.block(key, 1s, error);
    check(error);
    if constexpr (requires { from.reset(key, error); }) {
      from.reset(key, error);
      check(error);
    }
    (void)from.acquire(key, 1, 0s, {}, error);
    check(error);
    CHECK(from.waiting(key) == 0);
  };
  calls("k", true);
  calls(Key{"k", "own"}, false);
  CHECK_NOTHROW(from.set_wait_queue({}));
  from.cancel_waits();
  // NOLINTEND(bugprone-use-after-move)
  std::error_code error;
  CHECK(to.try_acquire("k", error));
  CHECK_FALSE(error);
  from = to;
  CHECK(from.peek("k", 0).remaining == to.peek("k", 0).remaining);
  CHECK_FALSE(error);
}

}  // namespace

TEST_CASE("a limiter that was moved from has lost its name, and can be assigned to", "[moved]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        for_each_charged(store, [](const auto& limiter) { check_moved_from(limiter); });
        check_moved_from(FixedWindow(store, "days", 1, Calendar::daily()));
      },
      Stores::virtual_time);
}

TEST_CASE("the other limiters answer an error, too, when they were moved from", "[moved]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        std::error_code error;
        // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
        BoundTokenBucket bound = TokenBucket(store, "bound", Quota::per_second(1)).at("alice");
        CHECK(bound.try_acquire());
        {
          const BoundTokenBucket to = std::move(bound);
          CHECK_FALSE(to.try_acquire());
        }
        CHECK_FALSE(bound.try_acquire(error));
        CHECK(error == Errc::invalid_key);

        SlotLock lock(store, "lock", 1s);
        const SlotLock other_lock = std::move(lock);
        (void)lock.try_acquire("alice", error);
        CHECK(error == Errc::invalid_key);
        (void)lock.acquire("alice", 0s, {}, error);
        CHECK(error == Errc::invalid_key);

        ConcurrencyLimiter jobs(store, "jobs", 3);
        const ConcurrencyLimiter other_jobs = std::move(jobs);
        CHECK_FALSE(jobs.try_acquire("alice", error).decision().allowed);
        CHECK(error == Errc::invalid_key);
        CHECK_FALSE(jobs.acquire("alice", 1, 0s, {}, error).decision().allowed);
        CHECK(error == Errc::invalid_key);
        CHECK_FALSE(jobs.release("alice", LeaseId{}, error));
        CHECK(error == Errc::invalid_key);

        FleetShedder fleet(store, "fleet", 3, {{"all", FleetShare::percent(100)}});
        const FleetShedder other_fleet = std::move(fleet);
        CHECK_FALSE(fleet.try_acquire("all", error).decision().allowed);
        CHECK(error == Errc::invalid_argument);
        fleet.reset(error);
        CHECK(error == Errc::invalid_key);

        Gates gates(store, "gates", {"account"});
        const Scope scope = gates.scope("account", "alice");
        const Gates other_gates = std::move(gates);
        CHECK_THROWS_AS(gates.scope("account", "alice"), std::invalid_argument);
        CHECK(gates.pass(scope));

        UtilizationShedder shedder(store, "shedder");
        const UtilizationShedder other_shedder = std::move(shedder);
        (void)shedder.sample("alice", 0.5, error);
        CHECK(error == Errc::invalid_key);
        CHECK_THROWS_AS(shedder.tier("sheddable"), std::invalid_argument);
        // NOLINTEND(bugprone-use-after-move)
      },
      Stores::memory);
}

TEST_CASE("a lease of a limiter that was moved from wakes who waits at the other when it returns",
          "[moved]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  ConcurrencyLimiter from(*store, "jobs", 1);
  const ConcurrencyLimiter to = std::move(from);
  const Key key{"alice", "own"};
  Lease lease = from.try_acquire(key);  // NOLINT(bugprone-use-after-move): that is what is tested
  REQUIRE(lease);
  const Time start = clock.now();
  Time granted_at{};
  const VirtualClock::AutoAdvance moving(clock);
  std::latch known(1);
  std::thread waiter([&] {
    const KnownThread here(clock);
    known.count_down();
    std::error_code error;
    if (const auto grant = to.acquire(key, 1, 1h, {}, error)) granted_at = clock.now();
  });
  known.wait();
  ManualResetEvent waker;
  clock.wait_until(start + 200ms, waker);
  CHECK(lease.release());
  clock.wait_until(start + 2h, waker);
  waiter.join();
  CHECK((granted_at - start).count() == 200'000);
}
