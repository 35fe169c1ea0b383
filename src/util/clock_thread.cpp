#include "sluice/detail/clock_thread.hpp"

#include <new>
#include <utility>

#include "sluice/detail/uncancelled.hpp"
#include "sluice/extend/manual_reset_event.hpp"

namespace sluice::detail {

ClockThread::~ClockThread() { stop(); }

void ClockThread::start(Step step) {
  if (is_running()) return;
  leave();
  // In a forked child the parent's wait still stands in the old one, and would be woken instead.
  if (!home_.is_here()) waker_ = std::make_shared<ManualResetEvent>();
  step_ = std::move(step);
  stopping_ = false;
  std::latch known(1);
  thread_ = std::thread([this, &known] { run(known); });
  home_ = {};
  known.wait();
}

void ClockThread::stop() noexcept {
  if (!is_running()) return leave();
  const Uncancelled uncancelled;
  stopping_ = true;
  waker_->wake();
  thread_.join();
}

void ClockThread::run(std::latch& known) {
  const KnownThread here(clock_);
  known.count_down();
  for (;;) {
    waker_->reset();  // before the flag is read: a later stop() wakes the wait
    if (stopping_) return;
    clock_.wait_until(step_(), *waker_);
  }
}

/// Gives up the parent's thread, which can neither be joined nor detached, and what it may have
/// waited for, whose destruction would wait for it.
void ClockThread::leave() noexcept {
  if (!thread_.joinable()) return;
  new (std::nothrow) std::thread(std::move(thread_));
  new (std::nothrow) std::shared_ptr<ManualResetEvent>(waker_);
}

}  // namespace sluice::detail
