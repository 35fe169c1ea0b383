// The list of limiters, for tests that ask the same of each. Threading: none of its own.
#pragma once

#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "sluice/sluice.hpp"

namespace sluice::test {

inline const Quota listed_quota = Quota::per_second(10).burst(5);

/// A store as limiters take it: by reference, or a pointer that is moved.
inline Store& given(Store& store) { return store; }
template <class Pointer>
requires requires(Pointer pointer) { *pointer; }
Pointer&& given(Pointer& pointer) { return std::move(pointer); }

/// Calls `body(key, make, ask)` for each limiter. `make(store)` makes one of a store or a pointer
/// to it. `ask(limiter, error)` makes a call that writes, and that is allowed the first two times;
/// then the store has `key`, as it renders it.
template <class Body>
void for_each_limiter(Body body) {
  using std::chrono_literals::operator""s;
  const auto acquire = [](const auto& limiter, std::error_code& error) {
    return limiter.try_acquire("a", error).allowed;
  };
  const auto hold = [](Lease lease) {
    const bool allowed = lease.decision().allowed;
    lease.release_later();
    return allowed;
  };
  const auto row = [&body](const char* key, auto make, auto ask) {
    body(std::string(key), make, ask);
  };

  row(
      "{a}:bucket:10/s",
      [](auto&& store) { return TokenBucket(given(store), "bucket", listed_quota); }, acquire);
  row(
      "{a}:shared", [](auto&& store) { return SharedTokenBucket(given(store), "shared"); },
      [](const SharedTokenBucket& bucket, std::error_code& error) {
        bucket.try_configure("a", listed_quota, error);
        return !error && bucket.try_acquire("a", 1, error);
      });
  row(
      "{a}:windows:10s,grants",
      [](auto&& store) {
        return SlidingWindow(given(store), "windows", {{5, 10s}});
      },
      acquire);
  row(
      "{a}:counter:1s",
      [](auto&& store) {
        return SlidingWindowCounter(given(store), "counter", {5, 1s});
      },
      acquire);
  row(
      "{a}:window:1s",
      [](auto&& store) { return FixedWindow(given(store), "window", 5, Calendar::every(1s)); },
      acquire);
  row(
      "{a}:rate",
      [](auto&& store) { return SharedSlidingWindow(given(store), "rate", {.keep_alive = 3600s}); },
      [](const SharedSlidingWindow& rate, std::error_code& error) {
        rate.try_configure("a", RateType::overall, 5, 1s, error);
        return !error && rate.try_acquire("a", error);
      });
  row(
      "{a}:learned", [](auto&& store) { return LearnedRate(given(store), "learned"); }, acquire);
  row(
      "{a}:jobs",
      [](auto&& store) { return ConcurrencyLimiter(given(store), "jobs", 5, {.ttl = 2s}); },
      [hold](const ConcurrencyLimiter& jobs, std::error_code& error) {
        return hold(jobs.try_acquire("a", error));
      });
  row(
      "{fleet}:fleet",
      [](auto&& store) {
        return FleetShedder(given(store), "fleet", 5, {{"all", FleetShare::percent(100)}},
                            {.ttl = 2s});
      },
      [hold](const FleetShedder& fleet, std::error_code& error) {
        return hold(fleet.try_acquire("all", 1, error));
      });
  row(
      "{shedder}:utilization",
      [](auto&& store) { return UtilizationShedder(given(store), "shedder"); },
      [](const UtilizationShedder& shedder, std::error_code& error) {
        return shedder.sample(0.95, error).allowed;
      });
  row(
      "{a}:slots", [](auto&& store) { return SlotLock(given(store), "slots", 1s); },
      [](const SlotLock& lock, std::error_code& error) {
        return static_cast<bool>(lock.reserve("a", 1s, error));
      });
  row(
      "{gates}:account=1", [](auto&& store) { return Gates(given(store), "gates", {"account"}); },
      [](const Gates& gates, std::error_code& error) {
        return gates.close(gates.scope("account", "1"), 30s, error).allowed;
      });
}

/// What `make` of a row makes, which need not be movable.
template <class Make, class StoreOrPointer>
auto allocate(Make make, StoreOrPointer& store) {
  using Limiter = decltype(make(store));
  return std::shared_ptr<Limiter>(new Limiter(make(store)));
}

}  // namespace sluice::test
