// ReconnectPace: the pauses between attempts to connect: short after a good connection, then
// growing, and random so that clients are not in step. Not thread-safe: it belongs to the I/O
// thread.
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
  /// The connection ended. It was good if it decided a call, however short it was, or lasted for a
  /// while; unless it is left because its server cannot decide (`unfit`): a replica answers peeks,
  /// and the client would return to it at once for ever.
  void ended(Time now, bool unfit = false) noexcept {
    const bool held = now - from_ >= healthy_after;
    if (connected_ && !unfit && (decided_ || held)) failures_ = 0;
    from_ = now;
  }

  /// The pause: at most reconnect_max from the end of a connection, which all clients of a server
  /// may lose at once; but from the start of a failed attempt, so that a hanging attempt is not
  /// waited for twice.
  [[nodiscard]] Span pause(Time now) noexcept {
    const Span cap = std::min(max_, min_ * (Word{1} << failures_));
    failures_ = std::min(failures_ + 1, most_failures);
    const Span drawn{static_cast<Word>(rng_.below(static_cast<std::uint64_t>(cap.count())))};
    return std::clamp(from_ + drawn - now, Span{0}, drawn);
  }

  /// A connection that lasted this long was good as well.
  static constexpr Span healthy_after = std::chrono::milliseconds{100};

 private:
  static constexpr unsigned most_failures = 20;

  Span min_;
  Span max_;
  SeededRng rng_;
  Time from_{};
  unsigned failures_ = 0;  // since the last good connection
  bool connected_ = false;
  bool decided_ = false;
};

}  // namespace sluice::redis_detail
