// Sources of random numbers for nonces, jitter and hash keys, injectable for tests and simulation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// A source of uniformly distributed 64-bit numbers. Not thread-safe unless the implementation says
/// so.
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

/// xoshiro256** (Blackman, Vigna 2018), seeded by SplitMix64. The same seed gives the same draws on
/// every platform and compiler. Not for secrets.
class SeededRng final : public Rng {
 public:
  explicit SeededRng(std::uint64_t seed) noexcept;
  std::uint64_t next() noexcept override;

 private:
  std::array<std::uint64_t, 4> state_;
};

/// A generator that draws from a SeededRng of the calling thread, which SystemRng seeds at its
/// first draw. Fast and thread-safe; a forked child is seeded anew. The first draw throws what
/// SystemRng throws. Not for secrets.
[[nodiscard]] Rng& thread_rng() noexcept;

/// The purposes for which the library draws where the caller passes no generator. In a simulated
/// world each has a stream of its own (Clock::rng()), so that an additional draw for one purpose
/// leaves the others unchanged.
enum class DrawFor : std::uint8_t {
  breaker,                ///< pauses of a CircuitBreaker
  backoff,                ///< waits of with_backoff()
  lease,                  ///< LeaseId
  line,                   ///< WaitQueueOptions::client
  shared_sliding_window,  ///< SharedSlidingWindowOptions::client
  shedding,               ///< UtilizationShedder::acquire_step()
  sampling,               ///< sampling times of a Sampler
  hash,                   ///< the hash secret of a memory store
  alternatives,           ///< FirstOf::by_weight()
};
inline constexpr std::size_t draw_purposes = 9;  ///< values of DrawFor

/// The random number generator of the operating system. Thread-safe. next() throws
/// std::system_error if there is none.
class SystemRng final : public Rng {
 public:
  std::uint64_t next() override;
};

}  // namespace sluice
