// What ends the function of a call early: the time by which it must end, a lease that is lost, and
// a stop request of the caller. Threading: as each member says.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "sluice/calls/grants.hpp"
#include "sluice/detail/clock_thread.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/stop_token.hpp"

namespace sluice::detail {

class HeldLease;

/// The stop token of a function, and when it is due.
class CallEnd {
 public:
  CallEnd(Time end, const Grants& grants, const StopToken& caller);

  [[nodiscard]] StopToken token() const noexcept { return stop_.get_token(); }
  /// Stops the token if `end` has come or a lease has expired. Returns when to look again;
  /// Time::max(): not at all. One thread at a time.
  [[nodiscard]] Time look(Time now) noexcept;
  [[nodiscard]] bool is_over(Time now) const noexcept { return now >= end_; }

 private:
  /// Stops the token as well.
  struct PassOn {
    StopSource stop;
    void operator()() noexcept { stop.request_stop(); }
  };

  Time end_;
  StopSource stop_;
  std::vector<std::shared_ptr<HeldLease>> leases_;
  std::list<StopCallback<PassOn>> causes_;
};

/// A CallEnd that is looked at whenever it is due: by a timer of a clock that the program moves, or
/// by a thread of its own, which it needs only if there is a time to look at.
class CallWatch {
 public:
  /// Throws std::bad_alloc, and std::system_error if there can be no thread.
  CallWatch(Clock& clock, Time end, const Grants& grants, const StopToken& caller);
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;
  ~CallWatch();

  [[nodiscard]] StopToken token() const noexcept { return end_.token(); }

 private:
  static void ring(void* self) noexcept;

  Clock& clock_;
  CallEnd end_;
  std::mutex mutex_;        // held while the timer is set
  bool is_closed_ = false;  // guarded by mutex_
  TimerCallback timer_{&CallWatch::ring, this};
  ClockThread thread_;
};

}  // namespace sluice::detail
