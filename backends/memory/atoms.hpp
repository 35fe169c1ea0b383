// The atomics of the store's protocol: the halves of a cell, the byte of a spin lock. A test that
// runs threads in every order replaces them by naming another header.
#pragma once

#if defined(SLUICE_MEMORY_ATOMS)
#include SLUICE_MEMORY_ATOMS
#else

#include <atomic>
#include <thread>

namespace sluice::memory {

template <class T>
using Atomic = std::atomic<T>;

/// Hooks around an exchange of 16 bytes, which no Atomic makes: before it another thread may run,
/// and after it a value may have changed.
inline void interleave() noexcept {}
inline void changed() noexcept {}

/// Lets other threads run: for a moment, or for longer.
inline void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}
inline void pause_long() noexcept { std::this_thread::yield(); }

/// Called after an exchange that lost to another thread. Threads that retry at once move the cache
/// line back and forth; if the loser waits for a few decisions, the winner makes them at the speed
/// of one thread. Why 16: docs/decisions.md.
inline void step_back() noexcept {
  for (int i = 0; i < 16; ++i) pause_briefly();
}

}  // namespace sluice::memory

#endif
