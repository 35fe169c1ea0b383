#include <sluice/limiters/shared_token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <memory>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const std::shared_ptr<Store> store = make_virtual_store(clock);
  const SharedTokenBucket console(store, "plan");  // in the program of an operator
  const SharedTokenBucket worker(store, "plan");   // in every other process

  std::error_code error;
  (void)worker.try_acquire("alice", error);
  std::cout << "before a quota is set: " << error.message() << '\n';

  console.try_configure("alice", Quota::per_second(10));  // does nothing if there is a quota
  std::cout << worker.try_acquire("alice", 4) << '\n';

  // A larger plan takes effect with the next request of every process. 4 tokens stay spent.
  console.configure("alice", Quota::per_second(20), Inheritance::additive);
  std::cout << worker.try_acquire("alice", 10) << '\n';

  const auto configuration = worker.configuration("alice");
  std::cout << configuration->quota << ", version " << configuration->version << '\n';

  Reservation held = worker.reserve("alice", 10, 1s);
  std::cout << "reserved, starts in " << held.wait().count() / 1000 << " ms\n";
  console.configure("alice", Quota::per_second(100));  // the reservation keeps its time
  std::cout << worker.try_acquire("alice") << '\n';
}
