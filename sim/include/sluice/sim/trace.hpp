// TraceHash: a running hash over the events of a simulation; equal runs have equal hashes. Plain
// values; no threading rule.
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
  /// An event that is known by its place in an order alone.
  void fold(Time time, std::uint64_t order) noexcept {
    mix(static_cast<std::uint64_t>(to_word(time)) | std::uint64_t{1} << 63);  // unlike the above
    mix(order);
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

/// What a trace is made of: an event that runs, or a note of a model.
struct TraceStep {
  Time time{};
  bool is_note = false;
  /// Of an event: its place in the order of scheduling, from 1. 0: it was posted; events that are
  /// posted run in the order of posting.
  std::uint64_t order = 0;
  std::uint32_t entity = 0;  ///< of a note, as are `kind` and `value`
  std::uint32_t kind = 0;
  std::uint64_t value = 0;
  std::uint64_t trace = 0;  ///< the hash up to this step

  friend bool operator==(const TraceStep&, const TraceStep&) = default;
};

/// Called with each step of a trace, before the event runs.
using TraceObserver = void (*)(void* context, const TraceStep& step);

}  // namespace sluice::sim
