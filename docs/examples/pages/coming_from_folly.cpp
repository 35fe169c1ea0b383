#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;  // stands still, in the place of the argument nowInSeconds

  // folly::TokenBucket bucket(10, 5);
  const TokenBucket buckets(make_virtual_store(clock), "uploads", Quota::per_second(10).burst(5));
  const auto bucket = buckets.at("disk");  // in production of a make_memory_store()

  // bool ok = bucket.consume(4);
  std::cout << bucket.try_acquire(4).allowed << '\n';

  // double consumed = bucket.consumeOrDrain(3);
  std::cout << buckets.try_acquire_up_to("disk", 3, 0).granted << " of 3\n";

  // folly::Optional<double> wait = bucket.consumeWithBorrowNonBlocking(2);
  Reservation borrowed = buckets.reserve("disk", 2, 10s);
  std::cout << "go in " << borrowed.wait() / 1ms << " ms\n";

  // bucket.returnTokens(2);
  std::cout << buckets.cancel("disk", borrowed) << " returned\n";
  clock.advance(300ms);
  std::cout << bucket.peek().remaining << " left\n";  // bucket.available()
}
