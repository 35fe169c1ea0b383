// Options of waiting calls: deadline, priority, flow, and the bounds of the wait queues. Plain
// values.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/clock.hpp"
#include "sluice/stop_token.hpp"

namespace sluice {

/// The time, by the store's clock, at which a wait ends without a grant: an instant, or a span from
/// the call on.
///
///     bucket.acquire("alice", 1, 10s);
///     bucket.acquire("alice", 1, store->clock().now() + 10s);
///     bucket.acquire("alice", 1, Deadline::never());
///
/// With a deadline in the past, a request is still granted if it need not wait.
class Deadline {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a span or an instant is a deadline
  Deadline(Time at) noexcept : at_(std::max(at, Time{})) {}
  /// As a SpanArg: a span beyond the range of Span, such as hours::max(), counts as the longest
  /// one.
  template <class Rep, class Period>
  requires std::convertible_to<std::chrono::duration<Rep, Period>, SpanArg> Deadline(
      const std::chrono::duration<Rep, Period>& in)
  noexcept : in_(SpanArg(in)), counts_(true) {}
  // NOLINTEND(google-explicit-constructor)
  [[nodiscard]] static Deadline never() noexcept { return Time::max(); }

  /// The deadline as an instant, for a call at this moment. Time::max() if it is beyond the range
  /// of Time.
  [[nodiscard]] Time on(const Clock& clock) const noexcept;

 private:
  Time at_{};
  Span in_{0};
  bool counts_ = false;
};

/// Options of one waiting call.
///
///     bucket.acquire("api", 1, 10s, {.priority = 1, .flow = customer});
struct WaitOptions {
  static constexpr int lowest_priority = -3;
  static constexpr int highest_priority = 3;
  static constexpr std::size_t priorities = 7;
  static constexpr int largest_weight = 1000;

  /// The higher is served first, but for WaitQueueOptions::lower_share. -3 to 3.
  int priority = 0;
  /// A customer or a tenant, say. Flows of one priority share in proportion to their weights, by
  /// cost; within a flow, who comes first is served first. The call copies the name. All that have
  /// none are one flow.
  std::string_view flow{};
  /// Of the flow; of two calls the later one counts. 1 to 1000.
  int weight = 1;
  /// A stop request ends the wait with Errc::cancelled.
  StopToken stop{};

  [[nodiscard]] bool is_valid() const noexcept {
    return priority >= lowest_priority && priority <= highest_priority && weight >= 1 &&
           weight <= largest_weight;
  }
  /// REQUIRES: it is not valid.
  [[nodiscard]] std::string what_is_wrong() const;
};

/// Which waiter fails when a wait queue is full.
enum class Overflow : std::uint8_t {
  refuse_newest,  ///< the new waiter ends with Errc::too_many_waiters
  drop_oldest,    ///< the waiter that has waited longest does
};

/// The wait queues of one limiter in this process; each key has one queue.
struct WaitQueueOptions {
  /// First come, first served across all processes that wait for the key. The store records since
  /// when each process has waited, and a granted request is checked against that order in the same
  /// round trip. Without it, all processes ask at the same hint; those that have it do not wait for
  /// them. No effect where Store::keeps_order() is false: on a store in memory, and behind a
  /// PrefetchStore. docs/waiting.md says what it costs.
  bool across_processes = true;
  /// With across_processes: how long a process that has died can delay those behind it, from the
  /// time when they could have been granted. 10 ms to 60 s.
  Span ticket_ttl = std::chrono::seconds{2};
  /// With across_processes: the number of this limiter in this process, unique among all processes,
  /// 1 to 2^52; 0: drawn at random. It breaks ties of the same microsecond: the smaller is first.
  std::int64_t client = 0;
  /// The most waiters for one key, 1 or more.
  std::size_t max_waiters = 100'000;
  Overflow overflow = Overflow::refuse_newest;
  /// The percentage of what is granted that is kept for waiters below a priority, whatever waits
  /// above them: so nobody starves. 0 to 50.
  int lower_share = 10;
  /// On a store that processes share, the first waiter asks again after this at the latest, because
  /// another process may have given something back without a notification. 1 ms to a day.
  Span recheck = std::chrono::seconds{1};
};

}  // namespace sluice
