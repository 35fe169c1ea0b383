// Waiting by blocking the thread.
#include "src/waiting/acquire.hpp"

#include <atomic>
#include <string>

#include "sluice/detail/first_of_wait.hpp"
#include "sluice/detail/uncancelled.hpp"
#include "sluice/detail/waiter.hpp"
#include "sluice/extend/manual_reset_event.hpp"

namespace sluice::detail {
namespace {

/// `Wait`: a Waiter, or a FirstOfWait.
template <class Wait>
class Blocked final : public Wait {
 public:
  using Wait::take;
  using Wait::Wait;
  [[nodiscard]] std::unique_ptr<ClaimedLimit> take_claim() { return Wait::take_claim(); }

  /// Blocks until the wait has ended.
  std::error_code wait(const StopToken& stop) {
    const Uncancelled uncancelled;
    // Before the start: the store may answer while that asks it.
    const auto cancel = [this] { this->cancel(); };
    const StopCallback<decltype(cancel)> cancels(stop, cancel);
    this->start();
    for (;;) {
      event_.reset();
      if (over_.load(std::memory_order_acquire)) break;  // pairs with finished()
      if (!wait_for_event()) this->on_time();
    }
    if (never_ && error_ == Errc::cancelled) {
      error_ = Errc::would_deadlock;
      reason_ = never_;
    }
    if (error_) note_reason(error_, std::move(reason_), this->refusal());
    return error_;
  }

 private:
  /// False once the clock shows timer(). A request that is under way is not waited for by the
  /// clock.
  bool wait_for_event() {
    const bool under_way = this->is_under_way();
    const Time until = this->timer();
    if (!under_way) return wait_or_give_up(until);
    if (until != Time::max()) return this->clock().Clock::wait_until(until, event_);
    event_.wait();
    return true;
  }
  /// A wait that cannot end is cancelled: it then fails with Errc::would_deadlock.
  bool wait_or_give_up(Time until) {
    std::string why;
    const WaitEnd end = this->clock().wait_or_tell(until, event_, why);
    if (end != WaitEnd::never) return end == WaitEnd::woken;
    never_ = std::make_shared<const std::string>(std::move(why));
    this->cancel();
    return true;
  }
  void timer_changed() noexcept override { event_.wake(); }
  void finished(std::error_code error) noexcept override {
    error_ = error;
    reason_ = this->reason_for(error);
    over_.store(true, std::memory_order_release);
    event_.wake();
  }

  ManualResetEvent event_;
  std::error_code error_;
  std::shared_ptr<const std::string> reason_;
  std::atomic<bool> over_{false};
  std::shared_ptr<const std::string> never_;  // why the wait cannot end
};

Store& store_of(const ClaimedLimits& limits) { return limits.front()->store(); }
Store& store_of(const Alternatives& alternatives) { return store_of(alternatives.limits.front()); }

/// The error of a call that must not wait, or none.
std::error_code error_before_wait(const Store& store, const WaitOptions& options) noexcept {
  if (!store.may_block()) return Errc::would_deadlock;
  if (!options.is_valid()) return Errc::invalid_argument;
  return options.stop.stop_requested() ? Errc::cancelled : std::error_code{};
}

/// After the wait.
template <class Wait>
std::shared_ptr<Blocked<Wait>> waited(const CallName& call, typename Wait::Limits limits,
                                      const Deadline& deadline, const WaitOptions& options,
                                      const std::optional<Arrival>& arrival) {
  std::error_code error = error_before_wait(store_of(limits), options);
  if (error == Errc::invalid_argument) {
    throw std::system_error(error, call.text() + ": " + options.what_is_wrong());
  }
  if (error) throw std::system_error(error, call.text());
  auto wait =
      std::make_shared<Blocked<Wait>>(std::move(limits), deadline, Caller::of(options), arrival);
  error = wait->wait(options.stop);
  if (error) throw wait->failed(call, error);
  return wait;
}

/// Null after an error.
template <class Wait>
std::shared_ptr<Blocked<Wait>> waited(typename Wait::Limits limits, const Deadline& deadline,
                                      const WaitOptions& options, std::error_code& error) noexcept
    try {
  error = error_before_wait(store_of(limits), options);
  if (error) return nullptr;
  auto wait = std::make_shared<Blocked<Wait>>(std::move(limits), deadline, Caller::of(options));
  error = wait->wait(options.stop);
  return error ? nullptr : wait;
} catch (const std::bad_alloc&) {
  error = std::make_error_code(std::errc::not_enough_memory);
  return nullptr;
}

ClaimedLimits only(std::unique_ptr<ClaimedLimit> limit) {
  ClaimedLimits limits;
  limits.push_back(std::move(limit));
  return limits;
}

}  // namespace

Grants block(const CallName& call, ClaimedLimits limits, const Deadline& deadline,
             const WaitOptions& options, const std::optional<Arrival>& arrival) {
  return waited<Waiter>(call, std::move(limits), deadline, options, arrival)->take<Grants>();
}

Grants block(ClaimedLimits limits, const Deadline& deadline, const WaitOptions& options,
             std::error_code& error) noexcept {
  const auto wait = waited<Waiter>(std::move(limits), deadline, options, error);
  return wait ? wait->take<Grants>() : Grants{};
}

Grants block(const CallName& call, Alternatives alternatives, const Deadline& deadline,
             const WaitOptions& options, const std::optional<Arrival>& arrival) {
  return waited<FirstOfWait>(call, std::move(alternatives), deadline, options, arrival)
      ->take<Grants>();
}

Grants block(Alternatives alternatives, const Deadline& deadline, const WaitOptions& options,
             std::error_code& error) noexcept {
  const auto wait = waited<FirstOfWait>(std::move(alternatives), deadline, options, error);
  return wait ? wait->take<Grants>() : Grants{};
}

std::unique_ptr<ClaimedLimit> block(const CallName& call, std::unique_ptr<ClaimedLimit> limit,
                                    const Deadline& deadline, const WaitOptions& options) {
  return waited<Waiter>(call, only(std::move(limit)), deadline, options, {})->take_claim();
}

std::unique_ptr<ClaimedLimit> block(std::unique_ptr<ClaimedLimit> limit, const Deadline& deadline,
                                    const WaitOptions& options, std::error_code& error) noexcept
    try {
  const auto wait = waited<Waiter>(only(std::move(limit)), deadline, options, error);
  return wait ? wait->take_claim() : nullptr;
} catch (const std::bad_alloc&) {
  error = std::make_error_code(std::errc::not_enough_memory);
  return nullptr;
}

}  // namespace sluice::detail
