// A waiter that is driven by a virtual clock alone: thousands of them wait on one thread.
// Threading: everything on the thread that moves the clock.
#pragma once

#include <functional>
#include <memory>

#include "sluice/detail/first_of_wait.hpp"
#include "sluice/detail/waiter.hpp"
#include "sluice/extend/owned_plan.hpp"
#include "sluice/sluice.hpp"

namespace sluice::test {

/// A call that claims of several limiters.
struct Several {
  using Grant = Grants;
};

/// `Wait`: a Waiter, or a FirstOfWait.
template <class L, class Wait = detail::Waiter>
class Probe final : public Wait {
 public:
  using Wait::Wait;
  using Grant = typename L::Grant;
  using Done = std::function<void(std::error_code, Grant)>;

  ~Probe() override { this->clock().cancel_timer(timer_callback_); }

  void start(Done done) {
    done_ = std::move(done);
    Wait::start();
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
    done_(error, error ? Grant{} : this->template take<Grant>());
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

/// The claim of one limiter.
template <class L>
detail::ClaimedLimits request_of(const L& limiter, const Key& key, Cost cost = 1) {
  detail::ClaimedLimits limits;
  limits.push_back(L::Verbs::claim(limiter, key, cost));
  return limits;
}

/// Starts to wait for `limits`, of an `L`.
template <class L>
std::shared_ptr<Probe<L>> wait_for(const L&, detail::ClaimedLimits limits, const Deadline& deadline,
                                   typename Probe<L>::Done done, detail::Caller caller = {},
                                   const std::optional<detail::Arrival>& arrival = {}) {
  auto probe = std::make_shared<Probe<L>>(std::move(limits), deadline, std::move(caller), arrival);
  probe->start(std::move(done));
  return probe;
}

using FirstOfProbe = Probe<Several, detail::FirstOfWait>;

/// Starts to wait for the first of several alternatives.
inline std::shared_ptr<FirstOfProbe> wait_for(const FirstOf& alternatives, const Deadline& deadline,
                                              FirstOfProbe::Done done,
                                              const detail::Caller& caller = {}) {
  auto probe = std::make_shared<FirstOfProbe>(alternatives.limits(), deadline, caller);
  probe->start(std::move(done));
  return probe;
}

struct Wanted {
  const char* key;
  Word cost;
};
template <class L>
std::shared_ptr<Probe<L>> wait_for(const L& limiter, const Wanted& wanted, const Deadline& deadline,
                                   typename Probe<L>::Done done, detail::Caller caller = {}) {
  return wait_for(limiter, request_of(limiter, wanted.key, wanted.cost), deadline, std::move(done),
                  std::move(caller));
}

}  // namespace sluice::test
