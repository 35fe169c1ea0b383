// Who owns a limiter's store. Threading: single-threaded.
#include "sluice/store_handle.hpp"

#include <memory>
#include <optional>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

const Quota quota = Quota::per_second(10);

/// Calls `body` with the name of each kind of limiter that can be copied, what makes one of a
/// pointer to its store, and what asks it.
template <class Body>
void for_each_limiter(Body body) {
  const auto ask = [](const auto& limiter) { return limiter.try_acquire("a").allowed; };
  body(
      TokenBucket::type_name, [](auto& store) { return TokenBucket(std::move(store), "b", quota); },
      ask);
  body(
      SlidingWindowCounter::type_name,
      [](auto& store) {
        return SlidingWindowCounter(std::move(store), "c", {5, 1s});
      },
      ask);
  body(
      SlidingWindow::type_name,
      [](auto& store) {
        return SlidingWindow(std::move(store), "w", {{5, 1s}});
      },
      ask);
  body(
      FixedWindow::type_name,
      [](auto& store) { return FixedWindow(std::move(store), "f", 5, Calendar::every(1min)); },
      ask);
  body(
      SharedTokenBucket::type_name,
      [](auto& store) { return SharedTokenBucket(std::move(store), "s"); },
      [](const SharedTokenBucket& bucket) {
        bucket.try_configure("a", quota);
        return bucket.try_acquire("a").allowed;
      });
  body(
      ConcurrencyLimiter::type_name,
      [](auto& store) { return ConcurrencyLimiter(std::move(store), "j", 5); },
      [](const ConcurrencyLimiter& jobs) { return jobs.try_acquire("a").decision().allowed; });
  body(
      FleetShedder::type_name,
      [](auto& store) {
        return FleetShedder(std::move(store), "f", 5, {{"all", FleetShare::percent(100)}});
      },
      [](const FleetShedder& fleet) { return fleet.try_acquire("all").decision().allowed; });
  body(
      UtilizationShedder::type_name,
      [](auto& store) { return UtilizationShedder(std::move(store), "u"); },
      [](const UtilizationShedder& shedder) { return shedder.try_acquire("critical").allowed; });
  body(
      SlotLock::type_name, [](auto& store) { return SlotLock(std::move(store), "l", 1us); },
      [](const SlotLock& lock) { return bool(lock.reserve("a", 1s)); });
  body(
      Gates::type_name, [](auto& store) { return Gates(std::move(store), "g", {"kind"}); },
      [](const Gates& gates) { return gates.pass(gates.scope("kind", "id")).allowed; });
}

}  // namespace

TEST_CASE("a limiter owns the store that it is given as a pointer, together with its copies",
          "[core][store_handle]") {
  for_each_limiter([](const char* name, auto make, auto ask) {
    INFO(name);
    auto store = make_memory_store();
    const auto life = store->life();
    auto limiter = std::make_optional(make(store));
    CHECK(ask(*limiter));
    auto copy = std::make_optional(*limiter);
    limiter.reset();
    CHECK_FALSE(life.is_over());
    CHECK(ask(*copy));
    copy.reset();
    CHECK(life.is_over());
  });
}

TEST_CASE("a limiter shares a store with its other owners", "[core][store_handle]") {
  for_each_limiter([](const char* name, auto make, auto ask) {
    INFO(name);
    const std::shared_ptr<MemoryStore> store = make_memory_store();
    {
      std::shared_ptr<MemoryStore> given = store;
      const auto limiter = make(given);
      CHECK(ask(limiter));
      CHECK(store.use_count() == 2);
    }
    CHECK(store.use_count() == 1);
  });
}

TEST_CASE("a shared sliding window owns the store that it is given as a pointer",
          "[core][store_handle]") {
  auto store = make_memory_store();
  const auto life = store->life();
  {
    const SharedSlidingWindow rate(std::move(store), "tag", "rate");
    rate.configure(RateType::overall, 5, 1s, SpentPermits::forgotten);
    CHECK(rate.try_acquire());
  }
  CHECK(life.is_over());
}

TEST_CASE("a limiter borrows the store that it is given by reference", "[core][store_handle]") {
  const std::shared_ptr<Store> store = make_memory_store();
  { CHECK(TokenBucket(*store, "b", quota).try_acquire("a")); }
  CHECK(store.use_count() == 1);
  CHECK_FALSE(store->life().is_over());
}

TEST_CASE("a bucket that is bound to a key keeps the store", "[core][store_handle]") {
  std::optional<TokenBucket> bucket(std::in_place, make_memory_store(), "b", quota);
  const BoundTokenBucket bound = bucket->at("a");
  bucket.reset();
  CHECK(bound.try_acquire());
}

TEST_CASE("a limiter that was moved from still has its store", "[core][store_handle]") {
  TokenBucket from(make_memory_store(), "b", quota);
  const TokenBucket to = std::move(from);
  std::error_code error;
  CHECK_FALSE(from.try_acquire("a", error));  // NOLINT(bugprone-use-after-move)
  CHECK(error == Errc::invalid_key);
  CHECK(&from.store() == &to.store());
}

TEST_CASE("a store that is a null pointer is refused by its name", "[core][store_handle]") {
  const auto null = "the pointer to a store is null";
  CHECK_THROWS_WITH(TokenBucket(std::unique_ptr<Store>(), "b", quota), null);
  CHECK_THROWS_WITH(SlotLock(std::shared_ptr<MemoryStore>(), "l", 1s), null);
  CHECK_THROWS_AS(TokenBucket(std::shared_ptr<Store>(), "b", quota), std::invalid_argument);
}

TEST_CASE("a fallback store owns the stores that it is given as pointers", "[core][store_handle]") {
  auto primary = make_memory_store();
  auto local = make_memory_store();
  const auto lives = {primary->life(), local->life()};
  CircuitBreaker breaker(primary->clock());
  {
    const TokenBucket bucket(
        std::make_unique<FallbackStore>(std::move(primary), breaker,
                                        FailurePolicy::local(std::move(local), 2)),
        "b", quota);
    CHECK(bucket.try_acquire("a"));
    for (const auto& life : lives) CHECK_FALSE(life.is_over());
  }
  for (const auto& life : lives) CHECK(life.is_over());
}

TEST_CASE("who waits does not own the store", "[core][store_handle]") {
  const std::shared_ptr<Store> store = make_memory_store();
  const TokenBucket bucket(store, "b", quota);
  struct Waiting final : detail::WaiterFor<TokenBucket> {
    using WaiterFor::WaiterFor;
    void timer_changed() noexcept override {}
    void finished(std::error_code) noexcept override {}
  };
  const long owners = store.use_count();
  const auto waiter =
      std::make_shared<Waiting>(bucket, detail::KeyedRequest("a", 1), Deadline::never(), 0);
  CHECK(store.use_count() == owners);
}
