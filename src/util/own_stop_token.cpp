// The callbacks of a stop source: each is called once, and never after its end.
#include "sluice/detail/own_stop_token.hpp"

#include "sluice/detail/uncancelled.hpp"

namespace sluice::detail {

bool StopState::request() noexcept {
  std::unique_lock lock(mutex_);
  if (std::exchange(requested_, true)) return false;
  requester_ = std::this_thread::get_id();
  while (first_ != nullptr) {
    Node& node = *first_;
    unlink(node);
    running_ = &node;
    lock.unlock();
    node.run(node);  // the node may be destroyed by this
    lock.lock();
    running_ = nullptr;
    ran_.notify_all();
  }
  return true;
}

bool StopState::is_requested() const noexcept {
  const std::lock_guard lock(mutex_);
  return requested_;
}

bool StopState::add(Node& node) noexcept {
  const std::lock_guard lock(mutex_);
  if (requested_) return false;
  node.next = first_;
  if (first_ != nullptr) first_->link = &node.next;
  node.link = &first_;
  first_ = &node;
  return true;
}

void StopState::remove(Node& node) noexcept {
  const Uncancelled uncancelled;
  std::unique_lock lock(mutex_);
  if (node.link != nullptr) return unlink(node);
  if (requester_ == std::this_thread::get_id()) return;
  ran_.wait(lock, [&] { return running_ != &node; });
}

void StopState::unlink(Node& node) noexcept {
  *node.link = node.next;
  if (node.next != nullptr) node.next->link = node.link;
  node.link = nullptr;
}

}  // namespace sluice::detail
