// The atomics that the store's protocol is made of: the halves of a cell, the byte of a spin lock.
// A test that runs threads in every order puts its own in their place, by naming another header.
#pragma once

#if defined(SLUICE_MEMORY_ATOMS)
#include SLUICE_MEMORY_ATOMS
#else

#include <atomic>
#include <thread>

namespace sluice::memory {

template <class T>
using Atomic = std::atomic<T>;

/// Around an exchange of 16 bytes, which no Atomic makes: before it another thread may come in
/// between, and after it a value may have changed.
inline void interleave() noexcept {}
inline void changed() noexcept {}

/// Lets another thread go first: for a moment, or for longer.
inline void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}
inline void pause_long() noexcept { std::this_thread::yield(); }

/// After an exchange that lost to another thread's. Threads that try again at once pull the cache
/// line to and fro; if the loser stays away for a few decisions, the winner makes them at the
/// speed of one thread. Why 16: docs/decisions.md.
inline void step_back() noexcept {
  for (int i = 0; i < 16; ++i) pause_briefly();
}

}  // namespace sluice::memory

#endif
