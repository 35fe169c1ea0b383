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

/// Whether threads meet is up to the scheduler, which may keep all of them on one processor while
/// another program holds the rest. The tests are built once more with atomics that give way
/// (yielding_atoms.hpp): with them threads meet anywhere.
#if defined(SLUICE_MEMORY_ATOMS)
inline constexpr bool threads_must_meet = true;
#else
inline constexpr bool threads_must_meet = false;
#endif

/// True if threads have met often enough to stop, or cannot be expected to: on one processor a
/// thread is interrupted too seldom in what takes nanoseconds.
inline bool enough(std::uint64_t contention, std::uint64_t wanted) noexcept {
  return contention >= wanted || (!threads_must_meet && usable_processors() == 1);
}

/// What a test demands in the end.
inline bool met_enough(std::uint64_t contention, std::uint64_t wanted) noexcept {
  return contention >= wanted || !threads_must_meet;
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
