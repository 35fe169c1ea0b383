// Waits on a virtual clock that cannot end are told, and others are not. Threading: as the cases
// say.
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

TEST_CASE("a wait for a grant that cannot end fails, and says what is missing",
          "[core][clock][waiting][realtime]") {
  VirtualClock clock;
  clock.set_patience(20ms);  // for builds whose tools have a thread
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "b", Quota::per_second(1).burst(1));
  REQUIRE(bucket.try_acquire("a"));
  const auto message = [&](const auto& call) {
    try {
      call();
    } catch (const std::system_error& error) {
      CHECK(error.code() == Errc::would_deadlock);
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string still =
      "the virtual clock stands still at 946684800000000 us, and this thread ";
  const std::string allowed =
      "; allowed: a VirtualClock::AutoAdvance, with a KnownThread in each further thread that "
      "waits, "
      "or another thread that moves the clock";
  CHECK_THAT(message([&] { (void)bucket.acquire("a", 1, 10s); }),
             contains_text(still +
                           "waits until 946684801000000 us; the clock knows 0 threads, of which 0 "
                           "wait, and not this thread; it does not move by itself" +
                           allowed));
  CHECK(clock.timers() == 0);
  std::error_code error;
  CHECK_FALSE(bucket.acquire("a", 1, 10s, {}, error));
  CHECK(error == Errc::would_deadlock);
  const std::array claims{Claim(bucket, "a")};
  CHECK_THAT(message([&] { (void)acquire(claims, 10s); }), contains_text(still));
  CHECK_THAT(message([&] { Call({{bucket, "a"}}, {})([] {}); }), contains_text(still));
  clock.advance(1s);  // by the thread that waits
  REQUIRE(bucket.try_acquire("a"));
  CHECK_THAT(message([&] { (void)bucket.acquire("a", 1, 10s); }), contains_text("stands still"));
  const Call paused({{bucket, "z"}}, {.rng = nullptr});
  CHECK_THAT(message([&] { paused([] { throw RateLimited(1s); }); }),
             contains_text("stands still"));
  CHECK(clock.timers() == 0);
  clock.advance(1s);
  CHECK(bucket.acquire("a", 1, 10s));  // nothing of the failed waits is left
}

TEST_CASE("a thread that the clock does not know is told so, where the clock moves by itself",
          "[core][clock][waiting][realtime]") {
  VirtualClock clock;
  clock.set_patience(20ms);
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "b", Quota::per_second(1).burst(1));
  const VirtualClock::AutoAdvance moving(clock);
  REQUIRE(bucket.try_acquire("a"));
  std::string what;
  std::thread unknown([&] {
    try {
      (void)bucket.acquire("a", 1, 10s);
    } catch (const std::system_error& error) {
      what = error.what();
    }
  });
  unknown.join();
  CHECK_THAT(what, contains_text("the clock knows 1 threads, of which 0 wait, and not "
                                 "this thread; it moves by itself when all threads"));
  CHECK(bucket.acquire("a", 1, 10s));  // this thread is known
  // All known threads wait, and only for events.
  ManualResetEvent nobody;
  std::string why;
  CHECK(clock.wait_or_tell(Time::max(), nobody, why) == WaitEnd::never);
  CHECK_THAT(why, contains_text("this thread waits for ever; the clock knows 1 threads, "
                                "of which 1 wait, and this thread"));
  const std::string first = why;
  CHECK(clock.wait_or_tell(Time::max(), nobody, why) == WaitEnd::never);
  CHECK(why == first);  // a wait that was given up is no longer counted
  CHECK(clock.now() < to_time(word_limit));
  CHECK(clock.wait_or_tell(clock.now() + 1s, nobody, why) == WaitEnd::due);
  nobody.wake();
  CHECK(clock.wait_or_tell(clock.now() + 1s, nobody, why) == WaitEnd::woken);
}

TEST_CASE("a wait goes on while a thread may move the clock", "[core][clock][waiting][realtime]") {
  for (const bool by_itself : {false, true}) {
    VirtualClock clock;
    clock.set_patience(1ms);
    std::optional<VirtualClock::AutoAdvance> moving;
    if (by_itself) {
      moving.emplace(clock);  // it knows this thread, which runs
    } else {
      clock.advance(1s);  // this thread has moved it before
    }
    std::atomic<bool> over{false};
    WaitEnd end{};
    std::thread waiting([&] {
      const KnownThread here(clock);
      ManualResetEvent nobody;
      std::string why;
      end = clock.wait_or_tell(clock.now() + 1s, nobody, why);
      over = true;
    });
    while (clock.timers() == 0 && !over) std::this_thread::yield();
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() < start + 20ms) std::this_thread::yield();
    CHECK_FALSE(over);
    ManualResetEvent own;
    if (by_itself) {
      clock.wait_until(clock.now() + 2s, own);
    } else {
      clock.advance(1s);
    }
    waiting.join();
    CHECK(end == WaitEnd::due);
  }
}

TEST_CASE("patience may have no end", "[core][clock][waiting][realtime]") {
  VirtualClock clock;
  clock.set_patience(Span::max());
  ManualResetEvent event;
  std::atomic<bool> over{false};
  std::thread waiting([&] {
    std::string why;
    (void)clock.wait_or_tell(clock.now() + 1h, event, why);
    over = true;
  });
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < start + 5ms) std::this_thread::yield();
  CHECK_FALSE(over);
  event.wake();
  waiting.join();
}

TEST_CASE("a wait goes on while another thread exists, also if a third one just ends",
          "[core][clock][waiting][realtime]") {
  VirtualClock clock;
  clock.set_patience(Span::max());
  for (std::size_t i = 0; i < scaled(5'000); ++i) {
    ManualResetEvent event;
    std::atomic<bool> over{false};
    std::thread ends([] {});
    std::thread other([&] {
      while (clock.timers() == 0 && !over) std::this_thread::yield();
      event.wake();
    });
    std::string why;
    const WaitEnd end = clock.wait_or_tell(clock.now() + 1h, event, why);
    over = true;
    ends.join();
    other.join();
    REQUIRE(end == WaitEnd::woken);
  }
}

}  // namespace sluice::test
