// A clock that moves only when the program moves it: for unit tests and simulation.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/clock.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"

namespace sluice {

/// A clock for tests and simulation, which the program moves. Moving it forwards runs the timers
/// that are due on the way, each at its own time:
///
///     VirtualClock clock;
///     ...                        // one wait of 3 s and one of 5 s begin
///     clock.advance(4s);         // the first wait ends, and sees the time that it waited for
///
/// A thread that blocks on the clock waits until another thread moves it, or until it moves by
/// itself (AutoAdvance). A wait for a grant that cannot end fails with Errc::would_deadlock and
/// says what is missing: at once if the process has no other thread (on Linux), and else when the
/// clock has stood still for set_patience() while
/// - no other thread has ever moved it, and all threads that it knows wait on it as well; or
/// - it moves by itself, but does not know the thread that waits.
///
/// Setting the clock back runs no timer; waits keep their absolute times.
/// Thread-safe: a move is visible to the next reading.
class VirtualClock : public Clock {
 public:
  /// 2000-01-01 00:00:00 UTC.
  static constexpr Time default_start = to_time(946'684'800'000'000);

  /// Throws std::invalid_argument if `start` lies outside [0, word_limit].
  explicit VirtualClock(Time start = default_start);

  [[nodiscard]] Time now() const noexcept override {
    return to_time(now_.load(std::memory_order_acquire));
  }

  /// Moves the clock by `span`, which may be negative to simulate a clock that is set back. Returns
  /// the new time. Throws std::out_of_range, and does not move, if that is outside [0, word_limit].
  /// Concurrent moves are applied one after the other.
  Time advance(Span span);

  /// Moves to `time`, forwards or backwards. Throws as advance() does.
  void set(Time time);

  /// set() without a lock while no timer is set. REQUIRES: no other thread moves the clock, and
  /// `time` is between now() and word_limit.
  void move_alone(Time time) {
    if (any_timer_.load(std::memory_order_relaxed)) return set(time);
    now_.store(to_word(time), std::memory_order_release);
  }

  /// Moves to the time of the next timer and runs all that are due then. False: no timer is set, or
  /// only such as never come, beyond word_limit.
  bool advance_to_next();

  /// The number of timers that are set.
  [[nodiscard]] std::size_t timers() const;

  /// How long, in real time, the clock may stand still before a wait counts as one without an end:
  /// 10 s by default, 1 ms or more; Span::max(): for ever. It is counted in 20 parts, so that a
  /// debugger that stops the process does not use it up.
  void set_patience(Span real_time) noexcept;

  bool wait_until(Time when, ManualResetEvent& waker) override;
  WaitEnd wait_or_tell(Time when, ManualResetEvent& waker, std::string& why) override;
  TimerState set_timer(TimerCallback& timer, Time when) override;
  bool cancel_timer(TimerCallback& timer) noexcept override;
  void thread_begins() noexcept override;
  void thread_ends() noexcept override;

  /// For the lifetime of this object the clock moves by itself: to the next timer whenever all
  /// registered threads are blocked in wait_until(). The thread that made it is registered; others
  /// use KnownThread. A test that waits then needs no thread that moves the clock:
  ///
  ///     const VirtualClock::AutoAdvance moving(clock);
  ///     bucket.acquire("alice", 1, clock.now() + 1h);     // returns at once, an hour later
  ///
  /// While a registered thread blocks on anything else (a mutex, a join), time stops.
  class AutoAdvance {
   public:
    explicit AutoAdvance(VirtualClock& clock) noexcept;
    AutoAdvance(const AutoAdvance&) = delete;
    AutoAdvance& operator=(const AutoAdvance&) = delete;
    /// REQUIRES: runs on the thread that made it.
    ~AutoAdvance();

   private:
    VirtualClock& clock_;
    KnownThread known_;
  };

 private:
  struct Node {
    Word time;
    std::uint64_t order;
    TimerCallback* timer;
    [[nodiscard]] bool before(const Node& other) const noexcept {
      return time != other.time ? time < other.time : order < other.order;
    }
  };
  struct Ringing {
    const TimerCallback* timer;
    const Ringing* outer;
  };

  static void leave(Clock& clock) noexcept;
  WaitEnd wait(Time when, ManualResetEvent& waker, std::string* why);
  [[nodiscard]] bool ends(std::unique_lock<std::mutex>& lock, ManualResetEvent& waker);
  [[nodiscard]] bool may_move() const noexcept;
  [[nodiscard]] std::string what_is_missing(Time when) const;
  void note_mover() noexcept;
  [[nodiscard]] bool step_to_next();
  [[nodiscard]] bool moves_by_itself() const noexcept;
  void move_while_all_wait() noexcept;
  void move_to(Word time) noexcept;
  void show_at_least(Word time) noexcept;
  void ring_next(std::unique_lock<std::mutex>& lock) noexcept;
  void place(std::size_t at, const Node& node) noexcept;
  void sift_up(std::size_t at, const Node& node) noexcept;
  void sift_down(std::size_t at, const Node& node) noexcept;
  void remove(std::size_t at) noexcept;

  std::atomic<Word> now_;

  // Held during a move, also while timers run: they may move the clock on the same thread.
  std::recursive_mutex moving_;

  mutable std::mutex mutex_;  // guards what follows; never held while a timer runs
  std::condition_variable rung_;
  std::atomic<bool> any_timer_{false};  // `heap_` is not empty
  std::vector<Node> heap_;              // by time; TimerCallback::place is the index and one
  std::uint64_t order_ = 0;
  const Ringing* ringing_ = nullptr;
  std::thread::id ringer_;
  std::size_t known_ = 0;            // registered threads
  std::size_t waiting_ = 0;          // registered threads in wait_until()
  std::size_t moved_by_itself_ = 0;  // AutoAdvance objects
  std::thread::id mover_;            // the first thread that moved it
  bool several_movers_ = false;
  std::atomic<Word> patience_{10'000'000};
  std::atomic<std::uint64_t> moves_{0};
};

}  // namespace sluice
