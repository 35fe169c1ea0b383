#include <sluice/limiters/token_bucket.hpp>
#include <sluice/memory_store.hpp>
#include <sluice/virtual_clock.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  const char* const file = "limits.states";
  VirtualClock clock;  // by default, the store has the system's clock
  const auto run = [&](int calls) {
    const auto store = make_memory_store({.clock = &clock, .keep_names = true});
    if (std::ifstream(file).good()) {
      std::cout << load_states(*store, file).restored << " restored, ";
    }
    const TokenBucket bucket(*store, "api", Quota::per_minute(6).burst(10));
    int admitted = 0;
    for (int i = 0; i < calls; ++i) admitted += bucket.try_acquire("alice") ? 1 : 0;
    std::cout << admitted << " admitted, ";
    std::cout << save_states(*store, file).saved << " saved\n";
  };
  run(15);             // the first process
  clock.advance(20s);  // a new version is installed
  run(15);             // the next process
  std::cout << std::ifstream(file).rdbuf();
  std::remove(file);
}
