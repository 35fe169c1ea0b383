// Injected randomness: nonces, jitter, hash keys and, in tests and simulation, everything drawn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// A source of uniform 64-bit draws. Not thread-safe unless the implementation says so.
class Rng {
 public:
  Rng() = default;
  Rng(const Rng&) = default;
  Rng& operator=(const Rng&) = default;
  virtual ~Rng() = default;

  /// A uniform draw from all 64-bit values.
  virtual std::uint64_t next() = 0;

  /// A uniform draw from [0, bound), without bias. REQUIRES: bound >= 1 (0 is treated as 1).
  std::uint64_t below(std::uint64_t bound);
};

/// xoshiro256** (Blackman, Vigna 2018), seeded by SplitMix64: the same draws for the same seed on
/// every platform and compiler. Not for secrets.
class SeededRng final : public Rng {
 public:
  explicit SeededRng(std::uint64_t seed) noexcept;
  std::uint64_t next() noexcept override;

 private:
  std::array<std::uint64_t, 4> state_;
};

/// Draws from a SeededRng of the calling thread, which SystemRng seeds at its first draw: fast and
/// thread-safe; a forked child is seeded anew. Throws what SystemRng throws when it is seeded. Not
/// for secrets.
[[nodiscard]] Rng& thread_rng() noexcept;

/// What the library draws for, if it was given no generator. Each has a stream of its own in a
/// simulated world (Clock::rng()), so that one draw more for one purpose changes none for another.
enum class DrawFor : std::uint8_t {
  breaker,                ///< CircuitBreaker: its pauses
  backoff,                ///< with_backoff(): its waits
  lease,                  ///< LeaseId
  line,                   ///< WaitQueueOptions::client
  shared_sliding_window,  ///< SharedSlidingWindowOptions::client
  shedding,               ///< UtilizationShedder: which calls are shed
  sampling,               ///< Sampler: its times
  hash,                   ///< MemoryOptions::rng: the secret of a table's hash
};
inline constexpr std::size_t draw_purposes = 8;  ///< values of DrawFor

/// The operating system's generator. Thread-safe. Throws std::system_error if it has none.
class SystemRng final : public Rng {
 public:
  std::uint64_t next() override;
};

}  // namespace sluice
