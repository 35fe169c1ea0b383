#include "backends/redis/connection/inbox.hpp"

#include <utility>

namespace sluice::redis_detail {

void Inbox::take_spare(CallList& spare, std::size_t count) noexcept {
  const std::lock_guard lock(mutex_);
  while (spare.size() < count && !pool_.empty()) spare.push_back(pool_.pop_front());
}

void Inbox::deliver(std::span<CallPtr> calls) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;
  for (CallPtr& call : calls) arrived_.push_back(std::move(call));
}

bool Inbox::is_empty() noexcept {
  const std::lock_guard lock(mutex_);
  return arrived_.empty() && !is_taking_;
}

void Inbox::take(CallList& arrived) noexcept {
  const std::lock_guard lock(mutex_);
  arrived.swap(arrived_);
  is_taking_ = true;
}

void Inbox::end_taking() noexcept {
  const std::lock_guard lock(mutex_);
  is_taking_ = false;
}

void Inbox::recycle(CallList& ended) noexcept {
  if (ended.empty()) return;
  const std::lock_guard lock(mutex_);
  while (!ended.empty()) {
    CallPtr call = ended.pop_front();
    if (pool_.size() >= max_pooled || call->request.tail.capacity() > max_pooled_bytes) continue;
    call->renew();
    pool_.push_front(std::move(call));  // reuses the most recently used memory first
  }
}

void Inbox::close() noexcept {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

}  // namespace sluice::redis_detail
