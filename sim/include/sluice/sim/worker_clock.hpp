// WorkerClock: the clock of one worker in a World, which may be wrong. Threading: the thread of the
// World.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/asio/timed_loop.hpp"
#include "sluice/clock.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/sim/world.hpp"

namespace sluice::sim {

/// How a clock deviates from that of its World.
struct ClockError {
  Span offset{0};      ///< at the start; positive: ahead
  Word drift_ppm = 0;  ///< microseconds gained in each second, -100,000 to 100,000
};

/// The clock of one worker. It shows
///
///     shown + floor((t - t0) * (1 + drift_ppm / 10^6))       at the time t of the World,
///
/// where t0 and `shown` are the time of the World and of this clock when it was made, stepped or
/// given another drift; cut to [0, word_limit]. A step may set it back.
///
/// A wait on it (timers, sleeps, asio::Timer) ends at the first microsecond of the World
/// at which this clock shows its time or later: at once if a step forwards passes it, later after a
/// step back. Without an error it behaves as World::clock(), event by event. The generators of
/// rng() are streams of this clock's own.
class WorkerClock final : public Clock, private TimedLoop {
 public:
  ~WorkerClock() override;

  [[nodiscard]] Time now() const noexcept override { return shown_at(world_.now()); }

  /// Sets the clock forwards or back by this much. Throws std::out_of_range, and does nothing, if
  /// that leads outside [0, word_limit]. O(n log n) of the pending waits.
  void step(Span by);
  /// step() at a time of the World; there it ends at 0 or word_limit if it would lead outside.
  /// Throws std::out_of_range if `when` is in the past or beyond word_limit.
  void step_at(Time when, Span by);
  /// Changes the drift from now on. Throws std::invalid_argument if it is out of range.
  void set_drift(Word ppm);
  [[nodiscard]] Word drift_ppm() const noexcept { return rate_ - million; }

  /// What this clock shows at a time of the World that is not before its last change, if nothing
  /// changes it.
  [[nodiscard]] Time shown_at(Time world) const noexcept;
  /// The first time of the World, from now on, at which this clock shows `when` or later, if
  /// nothing changes it; Time::max() if that is beyond word_limit.
  [[nodiscard]] Time world_time(Time when) const noexcept;

  bool wait_until(Time when, ManualResetEvent& waker) override;
  TimerState set_timer(TimerCallback& timer, Time when) override;
  bool cancel_timer(TimerCallback& timer) noexcept override;
  [[nodiscard]] TimedLoop* loop() noexcept override { return this; }
  [[nodiscard]] Rng* rng(DrawFor purpose) noexcept override {
    return &draws_[static_cast<std::size_t>(purpose)];
  }
  [[nodiscard]] sluice::detail::Life::View life() const noexcept override {
    return world_.clock().life();
  }

 private:
  friend WorkerClock& make_worker_clock(World& world, const ClockError& error);
  static constexpr Word million = 1'000'000;
  class Pending;

  WorkerClock(World& world, std::uint64_t number, const ClockError& error);
  [[nodiscard]] bool calls_for(const boost::asio::any_io_executor& executor) const override;
  void set(Wait& wait, Time when) override;
  bool cancel(Wait& wait) noexcept override;

  [[nodiscard]] Pending& take_slot(Time when);
  void release(Pending& pending) noexcept;
  void arm(Pending& pending);
  void arm_or_release(Pending& pending);
  bool give_up(std::uint64_t& place) noexcept;
  bool disarm(Pending& pending) noexcept;
  void change(Word shown, Word rate);
  static void step_now(void* clock, std::uint64_t by);

  World& world_;
  std::array<SeededRng, draw_purposes> draws_;
  Word since_;                  // the time of the World at the last change
  Word shown_;                  // what the clock showed after it
  Word rate_;                   // microseconds in each 10^6 of the World
  std::uint64_t sequence_ = 0;  // of waits, in the order in which they were set
  // A wait's `place` is its index and one.
  std::vector<std::unique_ptr<Pending>> slots_;
  std::vector<std::size_t> free_;
};

/// Makes a clock that lives as long as the World, as World::clock() does. Throws
/// std::invalid_argument if the drift is out of range or the clock would show a time outside [0,
/// word_limit].
///
///     WorkerClock& clock = make_worker_clock(world, {.offset = 5s, .drift_ppm = -50});
///     clock.step_at(world.now() + 1h, -10s);
[[nodiscard]] WorkerClock& make_worker_clock(World& world, const ClockError& error = {});

}  // namespace sluice::sim
