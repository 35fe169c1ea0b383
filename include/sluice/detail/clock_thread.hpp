// HomeThread: a thread that ends with its owner, and that a forked child does not have.
// Threading: as std::thread.
#pragma once

#include <new>
#include <thread>
#include <utility>

#include "sluice/detail/fork_count.hpp"

namespace sluice::detail {

class HomeThread {
 public:
  [[nodiscard]] bool is_running() const noexcept { return thread_.joinable() && home_.is_here(); }
  /// REQUIRES: it does not run. Throws as std::thread().
  template <class Function>
  void start(Function function) {
    end();
    thread_ = std::thread(std::move(function));
    home_ = {};
  }
  /// Waits until it has ended, unless it is the parent's.
  void end() noexcept {
    if (!thread_.joinable()) return;
    if (home_.is_here()) return thread_.join();
    new (std::nothrow) std::thread(std::move(thread_));  // neither joined nor detached
    is_left_ = true;
  }
  /// What the parent's thread may have waited for must not be destroyed: that would wait for it.
  template <class Pointer>
  void leave(Pointer& waited_for) noexcept {
    if (is_left_) new (std::nothrow) Pointer(std::move(waited_for));
  }

 private:
  std::thread thread_;
  HomeProcess home_;
  bool is_left_ = false;
};

}  // namespace sluice::detail
