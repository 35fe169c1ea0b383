// What must not compile with Boost.Asio; see core.cpp. (The ignored result of a co_await is told by
// clang++, not by g++ 12.)
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/sluice.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using boost::asio::deferred;
using boost::asio::use_future;

// clang-format off
boost::asio::awaitable<void> asynchronous_results_are_looked_at(
    Store& store, const TokenBucket& bucket, const SlotLock& lock, const Gates& gates,
    const SharedSlidingWindow& rate, std::span<const Scope> scopes) {
  asio::async_decide(store, bucket.acquire_step("a"), deferred);  // error: nodiscard
  asio::async_decide(store, bucket.acquire_step("a"), use_future);  // error: nodiscard
  asio::async_try_acquire(bucket, "a", 1, use_future);    // error: nodiscard
  asio::async_execute(store, bucket.acquire_step("a"));   // error: nodiscard
  asio::async_reserve(bucket, "a", 1, 1s);                // error: nodiscard
  asio::async_reset(bucket, "a");                         // error: nodiscard
  asio::async_reset(bucket, "a", use_future);             // error: nodiscard
  asio::async_try_acquire(bucket, "a", 1, RequestId{});   // error: nodiscard
  asio::async_try_acquire(bucket, nullptr, 1, use_future);  // error: delete|no match
  asio::async_acquire(bucket, "a", 1, 1s);                // error: nodiscard
  asio::async_acquire(bucket, "a", 1, 1s, use_future);    // error: nodiscard
  asio::async_acquire(lock, "a", 1s);                     // error: nodiscard
  asio::async_acquire(gates, scopes, 1s);                 // error: nodiscard
  asio::async_acquire(rate, 1, 1s);                       // error: nodiscard
  asio::sleep_for(store.clock(), 1s);                     // error: nodiscard
  asio::sleep_for(store.clock(), 1s, use_future);         // error: nodiscard
  asio::sleep_until(store.clock(), Time{}, use_future);   // error: nodiscard
  static_cast<void>(co_await asio::async_acquire(bucket, "a", 1, 1s));
  if (!co_await asio::async_acquire(bucket, 42, 1, 1s)) co_return;
  co_await asio::sleep_for(store.clock(), 1s);
  asio::async_acquire(bucket, "a", 1, 1s, [](auto, const Reservation&) {});
  asio::async_try_acquire(bucket, "a", 1, [](auto, const Decision&) {});
  asio::async_decide(store, bucket.acquire_step("a"), [](auto, const Decision&) {});
  asio::async_execute(store, bucket.acquire_step("a"), [](auto, const OwnedOutcome&) {});
  asio::async_reset(bucket, "a", [](auto) {});
  co_await asio::async_reset(bucket, "a");
  asio::sleep_for(store.clock(), 1s, [](auto) {});
}
// clang-format on
