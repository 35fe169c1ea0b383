// LoopClock: the clock of a World; its waits are events of the World. Threading: the thread of the
// World.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/asio/timed_loop.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/rng.hpp"
#include "sluice/sim/timeline.hpp"
#include "sluice/virtual_clock.hpp"

namespace sluice::sim {

class World;
namespace detail {
class ResourceCore;
}

/// See World::clock().
class LoopClock final : public VirtualClock, private TimedLoop {
 public:
  LoopClock(World& world, boost::asio::execution_context& context, Time start, std::uint64_t seed);

  /// Runs the World until `when` or until the event is set. Throws std::logic_error inside the
  /// World's own run loop, or on another thread while it runs, because the time would never come.
  bool wait_until(Time when, ManualResetEvent& waker) override;
  WaitEnd wait_or_tell(Time when, ManualResetEvent& waker, std::string& why) override {
    return Clock::wait_or_tell(when, waker, why);
  }
  TimerState set_timer(TimerCallback& timer, Time when) override;
  bool cancel_timer(TimerCallback& timer) noexcept override;
  [[nodiscard]] TimedLoop* loop() noexcept override { return this; }
  /// A stream of the World's seed for each purpose. For the thread of the World.
  [[nodiscard]] Rng* rng(DrawFor purpose) noexcept override {
    return &draws_[static_cast<std::size_t>(purpose)];
  }
  [[nodiscard]] sluice::detail::Life::View life() const noexcept override { return life_.view(); }

 private:
  friend class World;
  friend class detail::ResourceCore;

  [[nodiscard]] bool calls_for(const boost::asio::any_io_executor& executor) const override;
  void set(Wait& wait, Time when) override;
  bool cancel(Wait& wait) noexcept override;
  /// set() for this instant, for a wait that will not be cancelled.
  void finish_soon(Wait& wait);

  [[nodiscard]] std::uint64_t schedule(Time when, void (*action)(void*, std::uint64_t), void* what);
  static void ring_timer(void* timer, std::uint64_t);
  static void finish_wait(void* wait, std::uint64_t);
  static void fetch(Timeline::Action action, void* context);

  World& world_;
  std::array<SeededRng, draw_purposes> draws_;
  sluice::detail::Life life_;
};

}  // namespace sluice::sim
