// Threads that start at one moment, and whether they can be expected to meet. Threading: belongs to
// the test case's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace sluice::test {

/// How many processors this process may run on. hardware_concurrency() counts those of the machine,
/// whatever taskset or a container leaves of them.
inline std::size_t usable_processors() noexcept {
#if defined(__linux__)
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) == 0) {
    return static_cast<std::size_t>(CPU_COUNT(&usable));
  }
#endif
  return std::thread::hardware_concurrency();
}

/// True if threads have met often enough, or cannot be expected to: on one processor a thread is
/// interrupted too seldom in what takes nanoseconds. Those tests are built once more with atomics
/// that give way (yielding_atoms.hpp), and with them threads meet anywhere.
inline bool enough(std::uint64_t meetings, std::uint64_t wanted) noexcept {
#if defined(SLUICE_MEMORY_ATOMS)
  return meetings >= wanted;
#else
  return meetings >= wanted || usable_processors() == 1;
#endif
}

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
