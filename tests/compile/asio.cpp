// What must not compile with Boost.Asio; see core.cpp. (The ignored result of a co_await is told by
// clang++, not by g++ 12.)
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include "sluice/asio.hpp"
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
  asio::async_acquire(rate, "a", 1, 1s);                  // error: nodiscard
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

boost::asio::awaitable<void> leases_outlive_their_condition(
    const ConcurrencyLimiter& jobs, const std::array<Claim, 1>& claims) {
  if (!co_await asio::async_acquire(jobs, "k", 1, 5s)) co_return;     // error: if .Lease lease = jobs.acquire
  if (co_await asio::async_try_acquire(jobs, "k", 1)) co_return;      // error: if .Lease lease = jobs.acquire
  const bool ok{co_await asio::async_acquire(jobs, "k", 1, 5s)};      // error: if .Lease lease = jobs.acquire
  if (!co_await asio::async_acquire(claims, 5s)) co_return;           // error: if .Grants granted = acquire
  if (!asio::async_acquire(jobs, "k", 1, 5s, use_future).get()) co_return;  // error: if .Lease lease = jobs.acquire
  if (Lease lease = co_await asio::async_acquire(jobs, "k", 1, 5s); !lease) co_return;
  if (const Grants granted = co_await asio::async_acquire(claims, 5s)) co_return;
  static_cast<void>(ok);
}

boost::asio::awaitable<void> blocking_calls_end_no_coroutine(
    const Call& call, const ConcurrencyLimiter& jobs, const Gates& gates,
    std::span<const Scope> scopes, Store& store) {
  const auto send = []() -> boost::asio::awaitable<int> { co_return 1; };
  const auto sleep = [&store] { return asio::sleep_for(store.clock(), 1s); };
  co_await call(send);                                                 // error: asio::async_call
  co_await sluice::guarded(jobs, "all", 1, 10s, send);                 // error: asio::async_call
  co_await sluice::with_backoff(gates, scopes, send);                  // error: asio::async_call
  static_cast<void>(call(sleep));                                      // error: asio::async_call
  co_await asio::async_call(call, send);
  co_await asio::guarded(jobs, "all", 1, 10s, send);
}

boost::asio::awaitable<void> options_are_no_token(
    const TokenBucket& b, const SlotLock& lock, const Gates& gates, std::span<const Scope> scopes,
    const SharedSlidingWindow& rate, std::span<const Claim> claims) {
  asio::AsyncWaitOptions options{.priority = 3};
  static_cast<void>(co_await asio::async_acquire(b, "k", 1, 5s, asio::AsyncWaitOptions{.priority = 3}));
  static_cast<void>(co_await asio::async_acquire(b, "k", 1, 5s, options));
  static_cast<void>(co_await asio::async_acquire(b, "k", 1, 5s, {.priority = 3}));
  static_cast<void>(co_await asio::async_acquire(lock, "k", 5s, options));
  static_cast<void>(co_await asio::async_acquire(lock, "k", 5s, {.priority = 3}));
  static_cast<void>(co_await asio::async_acquire(gates, scopes, 5s, options));
  static_cast<void>(co_await asio::async_acquire(gates, scopes, 5s, {.priority = 3}));
  static_cast<void>(co_await asio::async_acquire(rate, "k", 1, 5s, options));
  static_cast<void>(co_await asio::async_acquire(rate, "k", 1, 5s, {.priority = 3}));
  Grants some = co_await asio::async_acquire(claims, 5s, options);
  some = co_await asio::async_acquire(claims, 5s, {.priority = 3});
  some = asio::async_acquire(claims, 5s, options, use_future).get();
  asio::async_acquire(b, "k", 1, 5s, options, [](auto, const Reservation&) {});
}

boost::asio::awaitable<void> keys_of_temporaries_are_kept(const TokenBucket& b, const std::string& id) {
  const auto waits = asio::async_acquire(b, "user-" + id, 1, 1500ns);
  static_cast<void>(co_await asio::async_reserve(b, "user-" + id, 1, 1500ns));
  static_cast<void>(co_await asio::async_try_acquire(b, {"user-" + id, "uploads"}, 1));
  co_await asio::async_reset(b, "user-" + id);
}
// clang-format on
