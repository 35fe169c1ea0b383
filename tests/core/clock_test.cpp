// Clocks: the system's, and the one that tests move. Threading: the virtual clock is moved by
// several threads at once.
#include "sluice/virtual_clock.hpp"

#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

TEST_CASE("a virtual clock stands still until it is moved, and stays within 0 and 2^52 us",
          "[core][clock]") {
  VirtualClock from_2000;
  CHECK(to_word(from_2000.now()) == 946'684'800'000'000);
  CHECK(from_2000.now() == VirtualClock::default_start);
  CHECK(from_2000.coarse_now() == from_2000.now());
  for (const Time wrong : {to_time(-1), to_time(word_limit + 1), Time::max()}) {
    CHECK_THROWS_AS(VirtualClock(wrong), std::invalid_argument);
  }
  VirtualClock clock(to_time(0));
  for (const Span wrong : {Span{-1}, Span{word_limit + 1}, Span::max(), Span::min()}) {
    CHECK_THROWS_AS(clock.advance(wrong), std::out_of_range);
  }
  for (const Time wrong : {to_time(-1), to_time(word_limit + 1)}) {
    CHECK_THROWS_AS(clock.set(wrong), std::out_of_range);
  }
  CHECK(clock.now() == to_time(0));
  CHECK(clock.advance(Span{word_limit}) == to_time(word_limit));
  CHECK_THROWS_AS(clock.advance(1us), std::out_of_range);
  CHECK(clock.advance(Span{-word_limit}) == to_time(0));
  clock.set(to_time(word_limit));
  CHECK(clock.now() == to_time(word_limit));
}

TEST_CASE("moves of a virtual clock by several threads all count", "[core][clock]") {
  VirtualClock clock(to_time(0));
  constexpr int moves = 20'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Time last = clock.now();
      for (int j = 0; j < moves; ++j) {
        const Time moved = clock.advance(1us);
        if (moved <= last) std::terminate();
        last = moved;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(clock.now() == to_time(4 * moves));
}

TEST_CASE("the system's clock never goes back, and its coarse reading lags by less than its bound",
          "[core][clock][realtime]") {
  const SystemClock clock;
  Time last = clock.now();
  CHECK(to_word(last) > 1'600'000'000'000'000);
  CHECK(to_word(last) <= word_limit);
  for (int i = 0; i < 100'000; ++i) {
    const Time coarse = clock.coarse_now();
    const Time now = clock.now();
    if (now < last || coarse > now || coarse < last - Clock::coarse_lag) {
      FAIL("last " << to_word(last) << ", coarse " << to_word(coarse) << ", now " << to_word(now));
    }
    last = now;
  }
}
