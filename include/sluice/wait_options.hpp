// Until when, in which order and how many may wait. Plain values.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "sluice/clock.hpp"
#include "sluice/stop_token.hpp"

namespace sluice {

/// When to give up waiting, by the store's clock: an instant, or a span that counts from the call.
///
///     bucket.acquire("alice", 1, 10s);
///     bucket.acquire("alice", 1, store->clock().now() + 10s);
///     bucket.acquire("alice", 1, Deadline::never());
///
/// With one in the past, what needs no waiting is still granted.
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

  /// The instant, for a call that is made now. Time::max() if it is further than time goes.
  [[nodiscard]] Time on(const Clock& clock) const noexcept {
    if (!counts_) return at_;
    const Time now = clock.now();
    return in_ > Time::max() - now ? Time::max() : now + std::max(in_, -now.time_since_epoch());
  }

 private:
  Time at_{};
  Span in_{0};
  bool counts_ = false;
};

/// Of one call that waits.
struct WaitOptions {
  /// Waiters of a higher priority come first; see WaitQueueOptions::aging. From -1000 to 1000.
  int priority = 0;
  /// A stop request ends the wait with Errc::cancelled; what was reserved is given back.
  StopToken stop{};

  [[nodiscard]] bool is_valid() const noexcept { return priority >= -1000 && priority <= 1000; }
};

/// What happens to a waiter too many.
enum class Overflow : std::uint8_t {
  refuse_newest,  ///< who comes is turned away with Errc::too_many_waiters
  drop_oldest,    ///< who has waited longest is, for whom the answer is the least worth by now
};

/// How the callers of one limiter in this process wait for one key.
struct WaitQueueOptions {
  /// First come, first served over all processes that wait for the key, where the limiter cannot
  /// reserve: the store knows since when each process waits, and a request that is granted takes
  /// its turn there in the same trip. Set it in all processes: those without it do not wait for
  /// their turn. See docs/waiting.md for what it costs.
  bool across_processes = false;
  /// Then: for so long at most a process that has died keeps those behind it waiting, counted from
  /// when they could have been granted. 10 ms to 60 s.
  Span place_ttl = std::chrono::seconds{3};
  /// Then: the number of this limiter in this process, which no other may have, 1 to 2^52. 0: drawn
  /// at random. Of two that came in the same microsecond the smaller is first.
  std::int64_t client = 0;
  /// Waiters for one key, 1 or more.
  std::size_t most = 100'000;
  Overflow overflow = Overflow::refuse_newest;
  /// A waiter stands where one of a priority lower by one would that came this much earlier: so
  /// who waits rises, and nobody waits for ever. 1 us to a day.
  Span aging = std::chrono::seconds{1};
  /// How far ahead a waiter may reserve. What is reserved keeps its time whoever comes after, so
  /// with priorities choose it short; zero lets only the first in line ask, at two store
  /// operations a grant instead of one, and one more for each other process that waits. A grant
  /// costs one while no more processes wait than three quarters of the grants in a horizon. 0 or
  /// more; at most what the limiter can reserve.
  Span horizon = Span::max();
  /// The first in line asks again after this at the latest, for what others may have given back
  /// without our hearing of it, in other processes above all. 1 ms to a day.
  Span recheck = std::chrono::seconds{1};
};

}  // namespace sluice
