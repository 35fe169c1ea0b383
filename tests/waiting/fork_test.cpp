// What a forked child has of the waits of its parent: none, and no lock that its parent had.
// Threading: as each test says.
#include <chrono>
#include <mutex>
#include <thread>

#include "sluice/calls/diagnose.hpp"
#include "src/waiting/wait_queues.hpp"
#include "tests/catch.hpp"
#include "tests/support/in_child.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

TEST_CASE("a forked child waits for none who waits in its parent", "[waiting][fork][realtime]") {
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "api", Quota::per_minute(1));
  REQUIRE(bucket.try_acquire("a"));
  std::error_code error;
  std::thread waits([&] { static_cast<void>(bucket.acquire("a", 1, 1h, {}, error)); });
  while (bucket.waiting("a") == 0) std::this_thread::yield();

  CHECK(in_child([&] {
    if (bucket.waiting("a") != 0 || !diagnose(bucket).empty()) return false;
    bucket.cancel_waits();
    // It goes to the caller that waits here, and not to that of the parent.
    bucket.reset("a");
    return bucket.acquire("a", 1, 10s).allowed && bucket.waiting("a") == 0;
  }));

  CHECK(bucket.waiting("a") == 1);
  bucket.cancel_waits();
  waits.join();
  CHECK(error == Errc::cancelled);
}

TEST_CASE("a forked child waits while its parent changes its queues", "[waiting][fork][realtime]") {
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "api", Quota::per_second(100).burst(1));
  REQUIRE(bucket.try_acquire("a"));
  // As by a thread that the child does not have.
  const std::lock_guard changing(detail::wait_mutex(*store));
  CHECK(in_child([&] { return bucket.acquire("a", 1, 10s).allowed; }));
}

TEST_CASE("in a forked child a wait of the parent ends, and delays none of the child",
          "[waiting][fork][realtime]") {
  VirtualClock clock;
  const TokenBucket bucket(make_virtual_store(clock), "api", Quota::per_second(1).burst(1));
  REQUIRE(bucket.try_acquire("a"));
  std::error_code ended;
  bool granted = false;
  const auto probe = wait_for(bucket, {"a", 1}, Deadline::never(),
                              [&](const std::error_code& error, const Reservation& grant) {
                                ended = error;
                                granted = grant.allowed;
                              });

  CHECK(in_child([&] {
    bool is_granted_here = false;
    const auto own =
        wait_for(bucket, {"a", 1}, 1s, [&](const std::error_code& error, const Reservation& grant) {
          is_granted_here = !error && grant.allowed;
        });
    clock.advance(1s);
    return is_granted_here && ended == Errc::forked;
  }));

  clock.advance(1s);
  CHECK(granted);
}

}  // namespace sluice::test
