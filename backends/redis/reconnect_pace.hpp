// When a client tries to connect again: soon behind a connection that was a good one, ever later
// while there is none, and never in step with other clients.
// Not thread-safe: it belongs to the I/O thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice::redis_detail {

class ReconnectPace {
 public:
  /// REQUIRES: 0 < min <= max.
  ReconnectPace(Span min, Span max, std::uint64_t seed) noexcept
      : min_(min), max_(max), rng_(seed) {}

  /// An attempt begins.
  void attempt(Time now) noexcept {
    from_ = now;
    connected_ = false;
  }
  /// It succeeded.
  void connected(Time now) noexcept {
    from_ = now;
    connected_ = true;
    decided_ = false;
  }
  /// The connection decided a call.
  void decided() noexcept { decided_ = true; }
  /// The connection ended. It was a good one if it decided a call, however short it was, or held
  /// for a while; unless it is left because its server cannot decide (`unfit`): a replica answers
  /// questions, and would be come back to at once for ever.
  void ended(Time now, bool unfit = false) noexcept {
    const bool held = now - from_ >= healthy_after;
    if (connected_ && !unfit && (decided_ || held)) failures_ = 0;
    from_ = now;
  }

  /// How long the client stays away: at most reconnect_max from the end of a connection, which all
  /// clients of a server may lose at once; but from the beginning of an attempt that failed, so
  /// that one that hung is not waited for twice.
  [[nodiscard]] Span pause(Time now) noexcept {
    const Span cap = std::min(max_, min_ * (Word{1} << failures_));
    failures_ = std::min(failures_ + 1, most_failures);
    const Span drawn{static_cast<Word>(rng_.below(static_cast<std::uint64_t>(cap.count())))};
    return std::clamp(from_ + drawn - now, Span{0}, drawn);
  }

  /// A connection that held this long was a good one as well.
  static constexpr Span healthy_after = std::chrono::milliseconds{100};

 private:
  static constexpr unsigned most_failures = 20;

  Span min_;
  Span max_;
  SeededRng rng_;
  Time from_{};
  unsigned failures_ = 0;  // since there was a good connection
  bool connected_ = false;
  bool decided_ = false;
};

}  // namespace sluice::redis_detail
