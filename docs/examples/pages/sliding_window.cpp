#include <sluice/limiters/sliding_window.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const SlidingWindow limit(make_virtual_store(clock), "partner", {{4, 5s}, {6, 60s}});

  std::cout << limit.try_acquire("shop-7", 2) << '\n';
  clock.advance(3s);
  std::cout << limit.try_acquire("shop-7", 2) << '\n';
  clock.advance(1s);
  std::cout << limit.try_acquire("shop-7", 1) << '\n';  // part 0: the window of 5 s refuses
  std::cout << limit.try_acquire("shop-7", 3) << '\n';  // part 1: the window of 60 s refuses

  Reservation held = limit.reserve("shop-7", 1, 10s);
  std::cout << "reserved, starts in " << held.wait().count() / 1000 << " ms\n";
  std::cout << "cancelled, " << limit.cancel("shop-7", held) << " unit refunded\n";

  clock.advance(1s);
  std::cout << limit.try_acquire("shop-7", 2) << '\n';
  const std::vector<Word> left = limit.remaining("shop-7");
  std::cout << "left in 5 s: " << left[0] << ", in 60 s: " << left[1] << '\n';
}
