// TraceHash: a running hash over the events of a simulation; equal runs have equal hashes. A plain
// value.
#pragma once

#include <bit>
#include <cstdint>

#include "sluice/time.hpp"

namespace sluice::sim {

/// Hashes (time, entity, kind, value) of every event, in order, into 64 bits. The same on every
/// platform. Detects differences, not forgeries.
class TraceHash {
 public:
  void fold(Time time, std::uint32_t entity, std::uint32_t kind, std::uint64_t value) noexcept {
    mix(static_cast<std::uint64_t>(to_word(time)));
    mix(std::uint64_t{entity} << 32 | kind);
    mix(value);
  }

  [[nodiscard]] std::uint64_t value() const noexcept {
    std::uint64_t h = state_;  // the finalizer of SplitMix64
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9;
    h = (h ^ (h >> 27)) * 0x94d049bb133111eb;
    return h ^ (h >> 31);
  }

 private:
  void mix(std::uint64_t word) noexcept {
    // Invertible in either argument, so that one changed word always changes the state.
    state_ = std::rotl(state_ ^ (word * 0x9e3779b97f4a7c15), 29) * 0xd6e8feb86659fd93 + 1;
  }

  std::uint64_t state_ = 0x736c756963650001;
};

}  // namespace sluice::sim
