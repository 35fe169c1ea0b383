#include "sluice/detail/call_end.hpp"

#include <algorithm>
#include <new>

#include "sluice/detail/held_lease.hpp"
#include "sluice/limiters/detail/lease.hpp"
#include "src/calls/leases_of.hpp"

namespace sluice::detail {

CallEnd::CallEnd(Time end, const Grants& grants, const StopToken& caller) : end_(end) {
  for_each_lease(grants, [this](Lease& lease, const ClaimedLimit&) {
    const auto& held = Lease::Verbs::held(lease);
    if (held) leases_.push_back(held);
  });
  for (const auto& held : leases_) causes_.emplace_back(held->lost_token(), PassOn{stop_});
  causes_.emplace_back(caller, PassOn{stop_});
}

Time CallEnd::look(Time now) noexcept {
  const auto is_lost = [](const auto& held) { return held->lost(); };
  if (is_over(now) || std::any_of(leases_.begin(), leases_.end(), is_lost)) stop_.request_stop();
  if (is_over(now)) return Time::max();
  Time next = end_;
  for (const auto& held : leases_) {
    if (held->is_held() && held->safe_until() > now) next = std::min(next, held->safe_until());
  }
  return next;
}

CallWatch::CallWatch(Clock& clock, Time end, const Grants& grants, const StopToken& caller)
    : clock_(clock), end_(end, grants, caller), thread_(clock) {
  const Time next = end_.look(clock.now());
  if (next == Time::max()) return;
  const TimerState timer = clock.set_timer(timer_, next);
  if (timer == TimerState::due) ring(this);
  if (timer == TimerState::never) thread_.start([this] { return end_.look(clock_.now()); });
}

CallWatch::~CallWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  clock_.cancel_timer(timer_);
  thread_.stop();
}

void CallWatch::ring(void* self) noexcept {
  CallWatch& watch = *static_cast<CallWatch*>(self);
  for (;;) {
    const Time next = watch.end_.look(watch.clock_.now());
    const std::lock_guard lock(watch.mutex_);
    if (watch.is_closed_ || next == Time::max()) return;
    try {
      if (watch.clock_.set_timer(watch.timer_, next) != TimerState::due) return;
    } catch (const std::bad_alloc&) {
      return;
    }
  }
}

}  // namespace sluice::detail
