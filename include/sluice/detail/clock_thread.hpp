// ClockThread: the thread of an object that works in the background, by a clock.
#pragma once

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <thread>

#include "sluice/clock.hpp"
#include "sluice/detail/fork_count.hpp"
#include "sluice/extend/manual_reset_event.hpp"

namespace sluice::detail {

/// Calls a function whenever it is due. A forked child does not have the thread, and may start one
/// of its own. Threading: wake() from any thread; start() and stop() one after the other.
class ClockThread {
 public:
  /// Works, and returns when it is to be called next, by the clock. It must not throw.
  using Step = std::function<Time()>;

  explicit ClockThread(Clock& clock) : clock_(clock) {}
  ClockThread(const ClockThread&) = delete;
  ClockThread& operator=(const ClockThread&) = delete;
  /// Stops it.
  ~ClockThread();

  [[nodiscard]] bool is_running() const noexcept { return thread_.joinable() && home_.is_here(); }
  /// Calls `step` at once, and whenever it is due; the clock knows the thread before this returns.
  /// No effect if it runs. Throws std::bad_alloc, and std::system_error if there can be no thread.
  /// REQUIRES: the clock lives until it has ended.
  void start(Step step);
  /// Calls the step now, instead of when it is due.
  void wake() noexcept { waker_->wake(); }
  /// What wake() sets, for those that may outlive this object: another one in a forked child, once
  /// it has started its thread.
  [[nodiscard]] const std::shared_ptr<ManualResetEvent>& waker() const noexcept { return waker_; }
  /// Waits until it has ended. REQUIRES: not called by the step.
  void stop() noexcept;

 private:
  void run(std::latch& known);
  void leave() noexcept;

  Clock& clock_;
  std::shared_ptr<ManualResetEvent> waker_ = std::make_shared<ManualResetEvent>();
  std::atomic<bool> stopping_{false};
  Step step_;
  std::thread thread_;
  HomeProcess home_;  // of the thread
};

}  // namespace sluice::detail
