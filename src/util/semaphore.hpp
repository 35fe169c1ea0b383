// Semaphore: blocks a thread until another posts. Threading: one thread waits, one posts.
#pragma once

#include <unistd.h>

#include "sluice/detail/uncancelled.hpp"

#if defined(_POSIX_SEMAPHORES) && _POSIX_SEMAPHORES > 0
#include <semaphore.h>

#include <cerrno>
#else
#include <condition_variable>
#include <mutex>
#endif

namespace sluice::detail {

#if defined(_POSIX_SEMAPHORES) && _POSIX_SEMAPHORES > 0

/// Wakes once. It may be destroyed as soon as wait() has returned, even while post() has not
/// returned: sem_post() allows that. A lock that the waking thread still holds, or a wait that
/// yields before it sleeps, as in std::binary_semaphore, would cost system calls.
class Semaphore {
 public:
  Semaphore() noexcept { ::sem_init(&posted_, 0, 0); }
  ~Semaphore() { ::sem_destroy(&posted_); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  void post() noexcept { ::sem_post(&posted_); }
  void wait() noexcept {
    const Uncancelled uncancelled;
    while (::sem_wait(&posted_) != 0 && errno == EINTR) continue;  // a signal was handled
  }

 private:
  sem_t posted_;
};

#else

/// The same for systems without unnamed semaphores.
class Semaphore {
 public:
  void post() noexcept {
    const std::lock_guard lock(mutex_);
    is_posted_ = true;
    posted_.notify_one();  // with the lock held: the woken thread may destroy this
  }
  void wait() noexcept {
    const Uncancelled uncancelled;
    std::unique_lock lock(mutex_);
    posted_.wait(lock, [this] { return is_posted_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  bool is_posted_ = false;
};

#endif

}  // namespace sluice::detail
