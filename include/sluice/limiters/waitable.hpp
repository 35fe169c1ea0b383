// What limiters that can be waited for have in common.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sluice/detail/copy_on_move_ptr.hpp"
#include "sluice/wait_options.hpp"

namespace sluice {

class Key;
class Store;
struct Decision;
struct WaitingCall;

namespace detail {

class ClaimedLimit;
class WaitQueues;
class WakeUp;

/// What those who give something back to a limiter read first, without a lock; see WakeUp.
struct WhoWaits {
  /// Wakes the first who waits for the key in this process; `left` is what the limit has now.
  using Wake = void (*)(WhoWaits& queues, const Key& key, const Decision& left) noexcept;
  std::atomic<Wake> wake{nullptr};  ///< null: nobody waits
  /// WaitQueueOptions::across_processes
  std::atomic<bool> across_processes{WaitQueueOptions{}.across_processes};
};

/// The claims of one call: one or more, all on one store.
using ClaimedLimits = std::vector<std::unique_ptr<ClaimedLimit>>;

/// Names the queue of a key among those of one limiter, whose keys have one unit.
[[nodiscard]] std::string queue_key(const Key& key);

}  // namespace detail

/// The queues of the callers that wait for a limiter in this process. Copies of a limiter share
/// them. A call of the limiter that gives something back wakes the first who waits for it, there
/// and in other processes: see docs/waiting.md. Thread-safe.
class Waitable {
 public:
  /// How callers wait from now on. Throws std::invalid_argument if an option is out of range.
  void set_wait_queue(const WaitQueueOptions& options) const;
  /// The options in force.
  [[nodiscard]] WaitQueueOptions wait_queue() const;
  /// Ends all waits with Errc::cancelled.
  void cancel_waits() const noexcept;

 protected:
  explicit Waitable(const Store& store);
  Waitable(const Waitable&) noexcept = default;
  Waitable(Waitable&&) noexcept = default;
  Waitable& operator=(const Waitable&) noexcept = default;
  Waitable& operator=(Waitable&&) noexcept = default;
  ~Waitable() = default;

  [[nodiscard]] const std::shared_ptr<detail::WaitQueues>& queues() const noexcept {
    return queues_;
  }
  /// How many callers wait for the key, which has the limiter's name.
  [[nodiscard]] std::size_t waiters_of(const Key& key) const;

 private:
  friend class detail::WakeUp;
  friend std::vector<WaitingCall> diagnose(const Waitable& limiter);

  detail::CopyOnMovePtr<detail::WaitQueues> queues_;
  detail::WhoWaits* who_waits_;  // of queues_
};

}  // namespace sluice
