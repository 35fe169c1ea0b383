// Threads that start at one moment. Threading: belongs to the test case's thread.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace sluice::test {

/// Runs `work(index)` in so many threads, which begin together; returns when all have ended.
template <class Work>
void together(std::size_t count, const Work& work) {
  std::atomic<std::size_t> ready{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      ready.fetch_add(1);
      while (ready.load() < count) std::this_thread::yield();
      work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sluice::test
