// When to stop asking something that fails, and when to try again.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "sluice/calls/backoff.hpp"
#include "sluice/clock.hpp"

namespace sluice {

/// How a CircuitBreaker trips and recovers.
struct BreakerOptions {
  /// So many failures in a row open it, with no success in between: 1 or more.
  std::uint32_t failures = 5;
  /// How long it stays open is drawn from [0, first_pause], [0, 2 * first_pause]... up to
  /// longest_pause, one step further with each probe that fails. 1 us to a day, first <= longest.
  /// However long an outage, who asks is let out longest_pause after its end at the latest. A
  /// longer one spares callers: each probe costs one of them a deadline.
  Span first_pause = std::chrono::milliseconds{100};
  Span longest_pause = std::chrono::milliseconds{250};
  /// What the pauses are drawn from; null: rng_of() its clock. The breaker draws from one thread at
  /// a time. REQUIRES: outlives the breaker, and nobody else draws from it.
  Rng* rng = nullptr;
};

/// Counts the outcomes of calls to one thing, and says whether it is to be asked:
///
///     closed      every call goes out; `failures` failures in a row open it
///     open        no call goes out, until a pause has passed
///     half_open   one call is out, the probe: if it succeeds the breaker closes, if it fails it
///                 opens for longer
///
/// The probe is a caller's own call; nothing runs in the background. All times are the clock's; if
/// it is set back while the breaker is open, the pause is over. One breaker may stand before
/// several users of one thing. Thread-safe. REQUIRES: the clock outlives it.
class CircuitBreaker {
 public:
  enum class State : std::uint8_t { closed, open, half_open };
  enum class Result : std::uint8_t {
    success,
    failure,
    unclear,  ///< says nothing: the call was withdrawn, or was never put
  };

  /// What ask() answers, and what answer() wants back.
  struct Leave {
    bool granted = false;
    bool is_probe = false;
    std::uint64_t era = 0;
    Span wait{0};  ///< not granted: when to ask again; at least 1 us
    [[nodiscard]] explicit operator bool() const noexcept { return granted; }
  };

  /// Counters only rise.
  struct Stats {
    std::uint64_t trips = 0;   ///< from closed to open
    std::uint64_t probes = 0;  ///< calls let out to see whether it is over
    std::uint64_t denied = 0;  ///< calls kept back
  };

  /// Told of every change, by the thread whose call made it; two of them may overlap. Must not
  /// throw, and not destroy the breaker.
  using OnChange = std::function<void(State from, State to)>;

  /// Throws std::invalid_argument if an option is out of range.
  explicit CircuitBreaker(Clock& clock, const BreakerOptions& options = {},
                          OnChange on_change = {});

  /// May a call go out? If so, answer() must be called once.
  [[nodiscard]] Leave ask() noexcept;
  /// What became of the call. Calls that went out before the breaker last opened or closed count
  /// no more.
  void answer(const Leave& leave, Result result) noexcept;

  /// Open lasts until somebody asks, also when the pause is over.
  [[nodiscard]] State state() const noexcept;
  [[nodiscard]] Stats stats() const noexcept;
  [[nodiscard]] Clock& clock() const noexcept { return clock_; }
  /// What a call that has failed may wait before it comes again: until the next one may go out;
  /// first_pause while the breaker is closed. At least 1 us.
  [[nodiscard]] Span wait() const noexcept;

 private:
  [[nodiscard]] Span rest(Time now) const noexcept;
  void open(Span pause) noexcept;
  [[nodiscard]] Span draw_pause() noexcept;
  void tell(State from, State to) const noexcept;

  Clock& clock_;
  BreakerOptions options_;
  OnChange on_change_;

  mutable std::mutex mutex_;  // guards what follows
  State state_ = State::closed;
  std::uint64_t era_ = 0;     // one more with each change between closed and open
  std::uint32_t failed_ = 0;  // in a row
  Time opened_{};
  Time until_{};
  Backoff backoff_;
  Stats stats_;
};

}  // namespace sluice
