// CircuitBreaker: when to stop calling a service that fails, and when to try again.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "sluice/calls/backoff.hpp"
#include "sluice/clock.hpp"

namespace sluice {

/// Options of a CircuitBreaker.
struct BreakerOptions {
  /// The number of failures in a row, without a success, that opens it: 1 or more.
  std::uint32_t failures = 5;
  /// The time for which it stays open is drawn from [0, first_pause], [0, 2 * first_pause]... up to
  /// longest_pause, doubled with each probe that fails. 1 us to a day, first <= longest. However
  /// long an outage, calls are allowed at most longest_pause after its end. Each probe costs one
  /// caller a timeout, so that a longer pause costs less during outages.
  Span first_pause = std::chrono::milliseconds{100};
  Span longest_pause = std::chrono::milliseconds{250};
  /// The generator of the pauses; null: rng_of() its clock. The breaker draws from one thread at a
  /// time. REQUIRES: it outlives the breaker, and has no other user.
  Rng* rng = nullptr;
};

/// Counts the outcomes of calls to one service, and decides whether it may be called:
///
///     closed      every call is allowed; `failures` failures in a row open it
///     open        no call is allowed, until a pause has passed
///     half_open   one call is pending, the probe: if it succeeds the breaker closes, else it
///                 opens for longer
///
/// The probe is a caller's own call; nothing runs in the background. All times are the clock's; if
/// it is set back while the breaker is open, the pause ends. Several users of one service may share
/// a breaker. Thread-safe. REQUIRES: the clock outlives it.
class CircuitBreaker {
 public:
  enum class State : std::uint8_t { closed, open, half_open };
  enum class Result : std::uint8_t {
    success,
    failure,
    unclear,  ///< no information: the call was cancelled or not made
  };

  /// The result of ask(), and the argument of answer().
  struct Permit {
    bool granted = false;
    bool is_probe = false;
    std::uint64_t era = 0;
    Span wait{0};  ///< if not granted, the wait until the next ask(); at least 1 us
    [[nodiscard]] explicit operator bool() const noexcept { return granted; }
  };

  /// Counters never decrease.
  struct Stats {
    std::uint64_t trips = 0;   ///< from closed to open
    std::uint64_t probes = 0;  ///< calls allowed as probes
    std::uint64_t denied = 0;  ///< calls not allowed
  };

  /// Called for every change of the state, by the thread whose call made it; two calls may overlap.
  /// It must not throw, and not destroy the breaker.
  using OnChange = std::function<void(State from, State to)>;

  /// Throws std::invalid_argument if an option is out of range.
  explicit CircuitBreaker(Clock& clock, const BreakerOptions& options = {},
                          OnChange on_change = {});

  /// Whether a call is allowed. If so, answer() must be called once.
  [[nodiscard]] Permit ask() noexcept;
  /// Reports the outcome of the call. Calls that were allowed before the breaker last opened or
  /// closed are ignored.
  void answer(const Permit& permit, Result result) noexcept;

  /// The state stays open until the next ask(), also after the pause.
  [[nodiscard]] State state() const noexcept;
  [[nodiscard]] Stats stats() const noexcept;
  [[nodiscard]] Clock& clock() const noexcept { return clock_; }
  /// How long a failed call should wait before a retry: until the next call is allowed; first_pause
  /// while the breaker is closed. At least 1 us.
  [[nodiscard]] Span wait() const noexcept;

 private:
  [[nodiscard]] Span rest(Time now) const noexcept;
  void open(Span pause) noexcept;
  [[nodiscard]] Span draw_pause() noexcept;
  void notify_change(State from, State to) const noexcept;

  Clock& clock_;
  BreakerOptions options_;
  OnChange on_change_;

  mutable std::mutex mutex_;  // guards what follows
  State state_ = State::closed;
  std::uint64_t era_ = 0;     // incremented with each change between closed and open
  std::uint32_t failed_ = 0;  // in a row
  Time opened_{};
  Time until_{};
  Backoff backoff_;
  Stats stats_;
};

}  // namespace sluice
