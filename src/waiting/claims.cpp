// A call that waits for several limits.
#include "sluice/detail/claims.hpp"

#include <atomic>
#include <stdexcept>

#include "src/util/quoted.hpp"
#include "src/util/uninitialized_array.hpp"
#include "src/waiting/claims_waiter.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

/// Counts refunds, and completes after the last one.
struct RefundCount {
  RefundCount(std::span<const std::unique_ptr<ClaimedLimit>> all, Completion completion) noexcept
      : limits(all), left(all.size()), done(std::move(completion)) {}

  static void refunded(void* self, const Outcome&) noexcept {
    auto* const all = static_cast<RefundCount*>(self);
    if (all->left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::unique_ptr<RefundCount> owned(all);
    for (const auto& limit : owned->limits) limit->wake_waiters();
    owned->done(Outcome{});
  }

  std::span<const std::unique_ptr<ClaimedLimit>> limits;  // of the caller, until it is done
  std::atomic<std::size_t> left;
  Completion done;
};

}  // namespace

void refund_all(std::span<const std::unique_ptr<ClaimedLimit>> limits, Completion done) noexcept {
  auto* const count = new (std::nothrow) RefundCount(limits, std::move(done));
  if (count == nullptr) return;  // `done` was not moved, and fails
  for (const auto& limit : limits) limit->refund({&RefundCount::refunded, count});
}

void ClaimedLimit::wake_waiters() const noexcept try {
  if (freed_early()) return;
  queues()->wake_first(queue_key(key()));
} catch (const std::bad_alloc&) {
  return;  // the first waiter asks again by its own timer
}

Claims::Claims(std::span<const Claim> claims) : claims_(claims.begin(), claims.end()) {
  if (claims_.empty() || claims_.size() > Plan::max_steps) {
    throw std::invalid_argument(std::to_string(claims_.size()) + " claims, allowed 1 to " +
                                std::to_string(Plan::max_steps));
  }
  for (const Claim& claim : claims_) {
    if (&claim.limit().store() == &store()) continue;
    throw std::invalid_argument("claims of one call must be on one store; " +
                                quoted(claim.limit().name()) + " is on another than " +
                                quoted(claims_.front().limit().name()));
  }
}

WaiterFor<Claims>::WaiterFor(const Claims& claims, const Request& request, const Deadline& deadline,
                             Caller caller)
    : store_(claims.store()),
      clock_(claims.store().clock()),
      deadline_(deadline.on(clock_)),
      caller_(std::move(caller)),
      arrival_(request) {
  for (const Claim& claim : claims.claims()) {
    limits_.push_back(claim.limit().fresh());
    queue_keys_.push_back(queue_key(limits_.back()->key()));
  }
}

void WaiterFor<Claims>::start() noexcept { join(0, Time{}); }

void WaiterFor<Claims>::join(std::size_t home, Time asleep_until) noexcept {
  std::shared_ptr<Waiter> next;
  try {
    next = std::make_shared<ClaimsWaiter>(shared_from_this(), home, asleep_until);
  } catch (const std::bad_alloc&) {
    return end(std::make_error_code(std::errc::not_enough_memory), {});
  }
  bool is_cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    current_ = next;
    is_cancelled = is_cancelled_;
  }
  next->start();
  if (is_cancelled) next->cancel();
}

void WaiterFor<Claims>::begin_move() noexcept {
  const std::lock_guard lock(mutex_);
  ++moves_;
}

void WaiterFor<Claims>::end_move() noexcept {
  {
    const std::lock_guard lock(mutex_);
    --moves_;
  }
  timer_changed();
}

std::shared_ptr<Waiter> WaiterFor<Claims>::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void WaiterFor<Claims>::on_time() noexcept {
  if (const auto waiter = current()) waiter->on_time();
}

void WaiterFor<Claims>::cancel() noexcept {
  std::shared_ptr<Waiter> waiter;
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    waiter = current_;
  }
  if (waiter) waiter->cancel();
}

Time WaiterFor<Claims>::timer() const {
  const auto waiter = current();
  return waiter ? waiter->timer() : Time::max();
}

/// While it moves from queue to queue, it does not wait for an instant.
bool WaiterFor<Claims>::is_under_way() const {
  std::shared_ptr<Waiter> waiter;
  {
    const std::lock_guard lock(mutex_);
    if (moves_ > 0) return true;
    waiter = current_;
  }
  return waiter && waiter->is_under_way();
}

void WaiterFor<Claims>::end(std::error_code error, const Decision& refusal) noexcept {
  std::shared_ptr<Waiter> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::exchange(current_, nullptr);
    if (last) arrival_ = last->arrival();
  }
  refusal_ = refusal;
  finished(error);
}

std::system_error WaiterFor<Claims>::failed(const CallName& call,
                                            const std::error_code& error) const {
  UninitializedArray<Step, Plan::max_steps> steps;
  std::size_t count = 0;
  for (const auto& limit : limits_) {
    steps.make(count++, [&] { return limit->step(); });
  }
  return failed_call(call, error, std::span<const Step>(steps.data(), count), refusal_.step);
}

std::shared_ptr<const std::string> WaiterFor<Claims>::reason_for(
    const std::error_code& error) const noexcept {
  return store_.is_over() ? nullptr : reason_of(store_.get(), error);
}

Grants WaiterFor<Claims>::take_grant() {
  if (!granted_.allowed) return {refusal_, {}, arrival_};
  return {granted_, std::move(limits_), arrival_};
}

}  // namespace sluice::detail
