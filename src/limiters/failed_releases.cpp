#include "src/limiters/failed_releases.hpp"

#include <new>
#include <utility>

#include "sluice/detail/held_lease.hpp"

namespace sluice::detail {

void FailedReleases::add(std::shared_ptr<HeldLease> held, Time until, Time now) noexcept try {
  const std::lock_guard lock(mutex_);
  again_at_ = now + pause;
  if (failed_.size() < most) failed_.push_back({std::move(held), until});
  any_.store(true, std::memory_order_relaxed);
} catch (const std::bad_alloc&) {
  return;  // the lease expires by its TTL
}

void FailedReleases::send_again(bool at_once) noexcept {
  if (!any_.load(std::memory_order_relaxed)) return;
  std::vector<Failed> due;
  {
    // Who finds it locked need not wait: the next call sends them.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || failed_.empty()) return;
    const HeldLease& any = *failed_.front().held;
    if (!at_once && !any.is_orphaned() && any.store().clock().now() < again_at_) return;
    due.swap(failed_);
    any_.store(false, std::memory_order_relaxed);
  }
  for (const Failed& each : due) HeldLease::send_release(each.held, each.until);
}

}  // namespace sluice::detail
