// FailedReleases: what a limiter owes a store that could not be reached.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "sluice/rules/leases.hpp"
#include "sluice/time.hpp"

namespace sluice::detail {

class HeldLease;

/// The releases of one limiter that nobody waits for, and that have failed. They are sent again
/// when the limiter is next asked, and when one has succeeded, until the leases have expired.
/// Thread-safe.
class FailedReleases {
 public:
  /// From a failure until the next attempt.
  static constexpr Span pause = std::chrono::milliseconds{50};
  /// Beyond that many, leases expire by their TTL.
  static constexpr std::size_t most = LeasesRule::max_holders;

  /// A lease that expires at `until`, and whose release has failed at `now`.
  void add(std::shared_ptr<HeldLease> held, Time until, Time now) noexcept;
  /// Not within `pause` of a failure.
  void send_again() noexcept { send_again(false); }
  /// The store answers again.
  void succeeded() noexcept { send_again(true); }

 private:
  void send_again(bool at_once) noexcept;

  struct Failed {
    std::shared_ptr<HeldLease> held;
    Time until;
  };

  std::atomic<bool> any_{false};  // relaxed: who misses it sends them with the next call
  std::mutex mutex_;
  std::vector<Failed> failed_;  // guarded by mutex_
  Time again_at_{};             // likewise
};

}  // namespace sluice::detail
