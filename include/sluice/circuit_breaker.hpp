// CircuitBreaker: when to stop calling a service that fails, and when to try again.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "sluice/calls/backoff.hpp"
#include "sluice/clock.hpp"
#include "sluice/detail/fork_count.hpp"
#include "sluice/detail/life.hpp"

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
/// a breaker.
///
/// A service of several parts that fail apart, such as the nodes of a cluster, has one breaker,
/// with a state for each part. Parts are numbered from 0; those from max_parts - 1 on share a
/// state. A service that is not divided is part 0.
///
/// A caller that knows how often the part has become reachable passes this number to ask(). The
/// pause ends when the number exceeds that of every failed call: a call may succeed that was not
/// tried yet. If it fails, a pause follows as after any probe. Users that share a breaker must pass
/// the same counter, that of one store.
///
/// In a forked child, a probe of the parent has ended without information. Thread-safe; a child
/// that is forked while other threads use the breaker must not. Once the clock has ended, the
/// breaker's time stands still.
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
    unsigned part = 0;
    std::uint64_t comebacks = 0;  ///< as passed to ask()
    [[nodiscard]] explicit operator bool() const noexcept { return granted; }
  };

  /// Of all parts together. Counters never decrease.
  struct Stats {
    std::uint64_t trips = 0;   ///< from closed to open
    std::uint64_t probes = 0;  ///< calls allowed as probes
    std::uint64_t denied = 0;  ///< calls not allowed
  };

  /// Called for every change of the state, by the thread whose call made it; two calls may overlap.
  /// It must not destroy the breaker. What it throws is ignored.
  using OnChange = std::function<void(State from, State to)>;
  using OnPartChange = std::function<void(unsigned part, State from, State to)>;

  static constexpr unsigned max_parts = 1024;

  /// Throws std::invalid_argument if an option is out of range.
  explicit CircuitBreaker(Clock& clock, const BreakerOptions& options = {},
                          OnChange on_change = {});
  CircuitBreaker(Clock& clock, const BreakerOptions& options, OnPartChange on_change);

  /// Whether a call to the part is allowed. If so, answer() must be called once.
  [[nodiscard]] Permit ask(unsigned part = 0, std::uint64_t comebacks = 0) noexcept;
  /// Reports the outcome of the call. Calls that were allowed before the part last opened or closed
  /// are ignored. A failure for whose part there is no memory is ignored as well.
  void answer(const Permit& permit, Result result) noexcept;

  /// The state stays open until the next ask(), also after the pause.
  [[nodiscard]] State state(unsigned part = 0) const noexcept;
  [[nodiscard]] Stats stats() const noexcept;
  /// REQUIRES: the clock has not ended.
  [[nodiscard]] Clock& clock() const noexcept { return clock_; }
  /// How long a failed call should wait before a retry: until the next call is allowed; first_pause
  /// while the part is closed. At least 1 us.
  [[nodiscard]] Span wait(unsigned part = 0) const noexcept;

 private:
  struct Part {
    explicit Part(const Backoff& pauses) noexcept : backoff(pauses) {}
    State state = State::closed;
    std::uint64_t era = 0;     // incremented with each change between closed and open
    std::uint32_t failed = 0;  // in a row
    std::uint64_t tried = 0;   // the most comebacks of a failed call
    Time opened{};
    Time until{};
    Backoff backoff;
  };

  template <class Self>
  [[nodiscard]] static auto* find(Self& self, unsigned part) noexcept;
  [[nodiscard]] Part* find_or_add(unsigned part) noexcept;
  [[nodiscard]] Time now() const noexcept;
  [[nodiscard]] Span rest(const Part& part) const noexcept;
  void note(Part& part, bool is_probe, Result result) noexcept;
  void open(Part& part, Span pause) noexcept;
  void end_probes_of_parent() noexcept;
  [[nodiscard]] Span draw_pause(Part& part) noexcept;
  void notify_change(unsigned part, State from, State to) const noexcept;

  Clock& clock_;
  detail::Life::View clock_life_;
  BreakerOptions options_;
  OnPartChange on_change_;
  Backoff pauses_;  // of a part that has not opened yet

  mutable std::mutex mutex_;  // guards what follows
  mutable Time last_now_{};
  detail::HomeProcess home_;
  Part first_;
  std::vector<Part> others_;  // from part 1 to the last one of which a call has failed
  Stats stats_;
};

}  // namespace sluice
