// What may stand inside a co_await: g++ 12 makes an aggregate or a closure there by copying its
// bytes, and destroys both. What has a destructor is therefore no option of an asynchronous call,
// and no function that is made in it. Threading: single-threaded.
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <type_traits>

#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using asio::async_acquire;
using boost::asio::awaitable;

namespace {

const Deadline hour = 1h;

// Aggregates and plain values that callers write into these calls.
template <class... Ts>
constexpr bool all_plain = (std::is_trivially_destructible_v<Ts> && ...);
static_assert(all_plain<Key, Cost, Deadline, asio::AsyncWaitOptions, BackoffOptions,
                        WaitQueueOptions, RequestId, Step, std::array<Step, 2>, BreakerOptions,
                        LeaseId, Quota, Utilization, Reservation, SlotPermit>);

template <class L, class Options>
concept Waits = requires(const L& limiter, Options&& options) {
  async_acquire(limiter, Key("k"), Cost(1), hour, std::forward<Options>(options),
                boost::asio::deferred);
};
static_assert(Waits<TokenBucket, asio::AsyncWaitOptions>);
static_assert(!Waits<TokenBucket, WaitOptions>);
static_assert(!Waits<ConcurrencyLimiter, WaitOptions>);

template <class Scopes>
concept Passes = requires(const Gates& gates, Scopes&& scopes) {
  async_acquire(gates, std::forward<Scopes>(scopes), hour);
};
static_assert(Passes<std::array<Scope, 1>&>);
static_assert(Passes<const std::array<Scope, 1>&>);
static_assert(Passes<std::span<const Scope>>);
static_assert(!Passes<std::array<Scope, 1>>);
static_assert(!Passes<const std::array<Scope, 2>>);

template <class Scopes>
concept PassesNow = requires(const Gates& gates, Scopes&& scopes) {
  asio::async_pass(gates, std::forward<Scopes>(scopes));
};
template <class Scopes>
concept Peeks = requires(const Gates& gates, Scopes&& scopes) {
  asio::async_peek(gates, std::forward<Scopes>(scopes));
};
static_assert(PassesNow<std::array<Scope, 1>&> && Peeks<const std::array<Scope, 1>&>);
static_assert(PassesNow<std::span<const Scope>> && Peeks<Scope>);
static_assert(!PassesNow<std::array<Scope, 1>> && !Peeks<std::array<Scope, 1>>);
static_assert(!PassesNow<const std::array<Scope, 2>> && !Peeks<const std::array<Scope, 2>>);

template <class Scopes>
concept Retries = requires(const Gates& gates, Scopes&& scopes, awaitable<int> (*call)()) {
  asio::with_backoff(gates, std::forward<Scopes>(scopes), call);
};
static_assert(Retries<std::array<Scope, 1>&>);
static_assert(!Retries<std::array<Scope, 1>>);
static_assert(!Retries<const std::array<Scope, 1>>);

/// What a closure becomes that captures something with a destructor.
struct Heavy {
  std::shared_ptr<int> held;
  awaitable<int> operator()() const { co_return *held; }
};
struct Light {
  int* seen;
  awaitable<int> operator()() const { co_return *seen; }
};
template <class Function>
concept Guarded = requires(const TokenBucket& bucket, const SlotLock& lock, Function&& function) {
  asio::guarded(bucket, Key("k"), Cost(1), hour, std::forward<Function>(function));
  asio::guarded(lock, Key("k"), hour, std::forward<Function>(function));
};
template <class Function>
concept BackedOff = requires(const Gates& gates, std::span<const Scope> scopes, Function&& f) {
  asio::with_backoff(gates, scopes, std::forward<Function>(f));
};
template <class Function>
constexpr bool is_taken = Guarded<Function>&& BackedOff<Function>;
template <class Function>
[[maybe_unused]] constexpr bool is_refused = !Guarded<Function> && !BackedOff<Function>;

static_assert(is_taken<Light> && is_taken<Light&>);
static_assert(is_taken<Heavy&> && is_taken<const Heavy&>);
static_assert(is_taken<std::reference_wrapper<Heavy>>);
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
static_assert(is_refused<Heavy>);
static_assert(is_refused<std::function<awaitable<int>()>>);
#else
static_assert(is_taken<Heavy>);
#endif

struct Rig {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  TokenBucket bucket{*store, "b", Quota::per_second(100)};
  Gates gates{*store, "g", {"host"}, {.ramp = 0s, .spacing = 0s}};
  boost::asio::io_context context;

  template <class Program>
  void run(Program program) {
    bool over = false;
    boost::asio::co_spawn(
        context,
        [&]() -> awaitable<void> {
          co_await program();
          over = true;
        },
        [](const std::exception_ptr& error) {
          if (error) std::rethrow_exception(error);
        });
    context.run();
    CHECK(over);
  }
};

}  // namespace

TEST_CASE("options in braces, and functions that are named, are destroyed once in a co_await",
          "[asio][waiting][calls]") {
  Rig rig;
  const auto held = std::make_shared<int>(7);
  const auto text = std::make_shared<std::string>(40, 'x');
  std::array<Scope, 1> scopes{rig.gates.scope("host", "k")};
  rig.run([&]() -> awaitable<void> {
    const auto call = [held]() -> awaitable<int> { co_return *held; };
    auto own = [mine = std::make_unique<int>(8)]() -> awaitable<int> { co_return *mine; };
    CHECK(co_await async_acquire(rig.bucket, {"t", "k"}, 1, 1h, {.priority = 3}));
    CHECK(co_await async_acquire(rig.bucket, "k", 1, 1h, {.flow = *text + "f", .weight = 2}));
    CHECK(co_await asio::guarded(rig.bucket, "k", 1, 1h, call, {.flow = *text + "g"}) == 7);
    CHECK(co_await async_acquire(rig.gates, scopes, 1h, {.priority = -3}));
    CHECK(co_await asio::guarded(rig.bucket, "k", 1, 1h, call) == 7);
    CHECK(co_await asio::guarded(rig.bucket, "k", 1, 1h, std::ref(own)) == 8);
    CHECK(co_await asio::guarded(rig.bucket, "k", 1, 1h,
                                 [&]() -> awaitable<int> { co_return 9; }) == 9);
    CHECK(co_await asio::with_backoff(rig.gates, scopes, call,
                                      {.attempts = 3, .priority = 1, .flow = "f"}) == 7);
    CHECK(co_await asio::with_backoff(rig.gates, scopes, call) == 7);
    CHECK(held.use_count() == 2);
  });
  CHECK(held.use_count() == 1);
}

TEST_CASE("arguments in braces are destroyed once in a co_await of a call", "[asio]") {
  Rig rig;
  const FixedWindow window(*rig.store, "w", 10, Calendar::every(1min));
  const ConcurrencyLimiter jobs(*rig.store, "j", 2);
  const std::array scopes{rig.gates.scope("host", "k")};
  rig.run([&]() -> awaitable<void> {
    const std::string part(40, 'x');
    CHECK(co_await asio::async_try_acquire(rig.bucket, {part + "t", part + "k"}, 1));
    CHECK(co_await asio::async_try_acquire(rig.bucket, part + "u", 1, RequestId{1, 2}));
    Reservation taken = co_await asio::async_reserve(window, {"t", "k"}, 1);
    const auto settled = co_await asio::async_settle(window, {"t", "k"}, taken, 3);
    CHECK(settled.charged == 2);
    Lease lease = co_await asio::async_try_acquire(jobs, part, 1, LeaseId{1, 2});
    const bool renewed = co_await asio::async_renew(lease);
    CHECK(renewed);
    const bool released = co_await asio::async_release(jobs, part, {1, 2});
    CHECK(released);
    CHECK(co_await asio::async_pass(rig.gates, scopes));
    CHECK(co_await asio::async_pass(rig.gates, rig.gates.scope("host", part)));
    co_await asio::async_reset(rig.bucket, part);
    const std::array steps{rig.bucket.acquire_step("k"), window.acquire_step("k")};
    const OwnedOutcome outcome = co_await asio::async_execute(*rig.store, steps);
    CHECK(outcome.steps().size() == 2);
    CHECK(co_await asio::async_decide(*rig.store, steps[0]));
  });
}

TEST_CASE("a priority that is out of range ends an asynchronous wait at once", "[asio][waiting]") {
  Rig rig;
  for (const int priority : {-4, 4}) {
    rig.run([&]() -> awaitable<void> {
      try {
        static_cast<void>(co_await async_acquire(rig.bucket, "k", 1, 1h, {.priority = priority}));
        FAIL("granted");
      } catch (const boost::system::system_error& error) {
        CHECK(error.code() == make_error_code(Errc::invalid_argument));
      }
    });
    rig.context.restart();
  }
}

}  // namespace sluice::test
