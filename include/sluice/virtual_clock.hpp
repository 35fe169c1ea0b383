// A clock that stands still until it is moved: for unit tests and simulation.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice {

/// Every member may be called from any thread; a move is seen by the next reading. Moving it on
/// rings the timers that are due on the way, each at its own time:
///
///     VirtualClock clock;
///     ...                        // something waits for 3 s and something for 5 s
///     clock.advance(4s);         // the first goes on, and sees the time that it waited for
///
/// A thread that blocks on it waits until another one moves it, or until it moves by itself: see
/// AutoAdvance. Setting the clock back rings nothing; what waits, waits for the time it was set to.
class VirtualClock : public Clock {
 public:
  /// 2000-01-01 00:00:00 UTC.
  static constexpr Time default_start = to_time(946'684'800'000'000);

  /// Throws std::invalid_argument if `start` lies outside [0, word_limit].
  explicit VirtualClock(Time start = default_start);

  [[nodiscard]] Time now() const noexcept override {
    return to_time(now_.load(std::memory_order_acquire));
  }

  /// Moves on by `span`, which may be negative to rehearse a clock that is set back. Returns the
  /// new time. Throws std::out_of_range, and does not move, if that lies outside [0, word_limit].
  /// Moves by several threads all count, one after the other.
  Time advance(Span span);

  /// Moves to `time`, forwards or backwards. Throws as advance() does.
  void set(Time time);

  /// set(), for somebody who alone moves this clock, and forwards: while no timer is set it takes
  /// no lock. REQUIRES: `time` lies between now() and word_limit.
  void move_alone(Time time) {
    if (any_timer_.load(std::memory_order_relaxed)) return set(time);
    now_.store(to_word(time), std::memory_order_release);
  }

  /// Moves to the next timer and rings it, and what else is due then. False: none is set.
  bool advance_to_next();

  /// Timers that are set.
  [[nodiscard]] std::size_t timers() const;

  bool wait_until(Time when, ManualResetEvent& waker) override;
  TimerState set_timer(TimerCallback& timer, Time when) override;
  bool cancel_timer(TimerCallback& timer) noexcept override;
  void thread_begins() noexcept override;
  void thread_ends() noexcept override;

  /// While it lives, time moves by itself: to the next timer whenever all known threads are blocked
  /// in wait_until(). The thread that made it is known; others say so with KnownThread. So a test
  /// that waits needs nobody to move the clock:
  ///
  ///     const VirtualClock::AutoAdvance moving(clock);
  ///     bucket.acquire("alice", 1, clock.now() + 1h);     // returns at once, an hour later
  ///
  /// What a known thread waits for otherwise (a mutex, a join) stops the time.
  class AutoAdvance {
   public:
    explicit AutoAdvance(VirtualClock& clock) noexcept;
    AutoAdvance(const AutoAdvance&) = delete;
    AutoAdvance& operator=(const AutoAdvance&) = delete;
    /// REQUIRES: on the thread that made it.
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

  // Held during a move, also while timers ring: they may move the clock on the same thread.
  std::recursive_mutex moving_;

  mutable std::mutex mutex_;  // guards what follows, never while anything rings
  std::condition_variable rung_;
  std::atomic<bool> any_timer_{false};  // `heap_` is not empty
  std::vector<Node> heap_;              // by time; TimerCallback::place is the index and one
  std::uint64_t order_ = 0;
  const Ringing* ringing_ = nullptr;
  std::thread::id ringer_;
  std::size_t known_ = 0;            // threads
  std::size_t waiting_ = 0;          // of them
  std::size_t moved_by_itself_ = 0;  // AutoAdvance objects
};

}  // namespace sluice
