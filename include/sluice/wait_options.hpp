// Deadlines, and the options of calls that wait. Plain values.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "sluice/clock.hpp"
#include "sluice/stop_token.hpp"

namespace sluice {

/// When a wait ends, by the store's clock: an instant, or a span that counts from the call.
///
///     bucket.acquire("alice", 1, 10s);
///     bucket.acquire("alice", 1, store->clock().now() + 10s);
///     bucket.acquire("alice", 1, Deadline::never());
///
/// With a deadline in the past, a request that needs no waiting is still granted.
class Deadline {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a span or an instant is a deadline
  Deadline(Time at) noexcept : at_(std::max(at, Time{})) {}
  template <class Rep, class Period>
  requires std::convertible_to<std::chrono::duration<Rep, Period>, Span> Deadline(
      const std::chrono::duration<Rep, Period>& in)
  noexcept : in_(in), counts_(true) {}
  // NOLINTEND(google-explicit-constructor)
  [[nodiscard]] static Deadline never() noexcept { return Time::max(); }

  /// The instant, for a call that is made now; Time::max() if a Time cannot hold it.
  [[nodiscard]] Time on(const Clock& clock) const noexcept;

 private:
  Time at_{};
  Span in_{0};
  bool counts_ = false;
};

/// The options of one call that waits.
struct WaitOptions {
  /// Higher priorities are served first; see WaitQueueOptions::aging. From -1000 to 1000.
  int priority = 0;
  /// A stop request ends the wait with Errc::cancelled; a reservation is refunded.
  StopToken stop{};

  [[nodiscard]] bool is_valid() const noexcept { return priority >= -1000 && priority <= 1000; }
};

/// What happens when a full queue gets one more waiter.
enum class Overflow : std::uint8_t {
  refuse_newest,  ///< the new waiter ends with Errc::too_many_waiters
  drop_oldest,    ///< the waiter that has waited longest does
};

/// How the callers of one limiter in this process wait, for each key.
struct WaitQueueOptions {
  /// One queue over all processes that wait for the key, in order of arrival, where the limiter
  /// cannot reserve: the store knows since when each process waits, and a request takes its turn in
  /// the same round trip. Set it in all processes: one without it does not wait for its turn. See
  /// docs/waiting.md for the cost.
  bool across_processes = false;
  /// With across_processes: how long a process that has died keeps the processes behind it waiting,
  /// counted from when it could have been granted. 10 ms to 60 s.
  Span place_ttl = std::chrono::seconds{3};
  /// With across_processes: the number of this limiter in this process, unique among all, 1 to
  /// 2^52; 0: drawn at random. Of two arrivals in one microsecond the smaller number is first.
  std::int64_t client = 0;
  /// How many callers may wait for one key, 1 or more.
  std::size_t max_waiters = 100'000;
  Overflow overflow = Overflow::refuse_newest;
  /// A waiter is placed as one of a priority lower by 1 that came this much earlier. So a waiter
  /// rises with time, and none waits for ever. 1 us to a day.
  Span aging = std::chrono::seconds{1};
  /// How far ahead a waiter may reserve; at most what the limiter can. A reservation keeps its time
  /// whoever comes later, so with priorities choose a short horizon. With zero only the first of
  /// the queue asks: a grant costs two store operations instead of one, and one more for each other
  /// process that waits. A grant costs one operation while at most three quarters as many processes
  /// wait as a horizon has grants. 0 or more.
  Span horizon = Span::max();
  /// The first waiter asks again after this at the latest, and so finds what other processes have
  /// released without waking it. 1 ms to a day.
  Span recheck = std::chrono::seconds{1};
};

}  // namespace sluice
