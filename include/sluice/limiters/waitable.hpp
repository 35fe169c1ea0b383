// What limiters that can be waited for have in common.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "sluice/detail/copy_on_move_ptr.hpp"
#include "sluice/wait_options.hpp"

namespace sluice {

class Key;
class Store;

namespace detail {

class WaitQueues;

/// Names the queue of a key among those of one limiter, whose keys have one unit.
[[nodiscard]] std::string queue_key(const Key& key);

}  // namespace detail

/// The queues of the callers that wait for a limiter in this process. Copies of a limiter share
/// them. Thread-safe.
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
  detail::CopyOnMovePtr<detail::WaitQueues> queues_;
};

}  // namespace sluice
