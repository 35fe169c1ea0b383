// A waiter that is driven by a virtual clock alone: thousands of them wait on one thread.
// Threading: everything on the thread that moves the clock.
#pragma once

#include <functional>
#include <memory>

#include "sluice/extend/owned_plan.hpp"
#include "sluice/sluice.hpp"

namespace sluice::test {

template <class L>
class Probe final : public detail::WaiterFor<L> {
 public:
  using detail::WaiterFor<L>::WaiterFor;
  using typename detail::WaiterFor<L>::Grant;
  using Done = std::function<void(std::error_code, Grant)>;

  ~Probe() override { this->clock().cancel_timer(timer_callback_); }

  void start(Done done) {
    done_ = std::move(done);
    detail::WaiterFor<L>::start();
  }
  [[nodiscard]] int times_over() const noexcept { return over_; }

 private:
  void timer_changed() noexcept override {
    this->clock().cancel_timer(timer_callback_);
    const Time when = this->timer();
    if (when != Time::max() && this->clock().set_timer(timer_callback_, when) == TimerState::due) {
      this->on_time();
    }
  }
  void finished(std::error_code error) noexcept override {
    ++over_;
    this->clock().cancel_timer(timer_callback_);
    done_(error, error ? Grant{} : this->take_grant());
  }
  static void ring(void* self) noexcept {
    // What it does may end it.
    const auto alive = static_cast<Probe*>(self)->shared_from_this();
    static_cast<Probe*>(self)->on_time();
  }

  TimerCallback timer_callback_{&Probe::ring, this};
  Done done_;
  int over_ = 0;
};

/// Starts to wait for `cost` of `key`.
template <class L>
std::shared_ptr<Probe<L>> wait_for(const L& limiter, typename L::Waiting::Request request,
                                   const Deadline& deadline, typename Probe<L>::Done done,
                                   detail::Caller caller = {}) {
  auto probe = std::make_shared<Probe<L>>(limiter, std::move(request), deadline, std::move(caller));
  probe->start(std::move(done));
  return probe;
}

}  // namespace sluice::test
