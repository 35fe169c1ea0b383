// The program's own send().
#include "tests/redis/fake/sending.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

namespace sluice::test {

struct SendHook {
  static thread_local Sending* here;
  // Of the Cut; not in it, because another thread may look here when it has just ended.
  static std::atomic<int> cut_fd;
  static std::atomic<std::size_t> cut_left;

  static ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
    if (here != nullptr) {
      ++here->sends_;
      here->fd_ = fd;
      here->size_ = size;
      if (here->before_) here->before_(fd);
      size = std::min(size, here->takes_);
    }
    if (fd == cut_fd) return send_last(fd, bytes, size, flags);
    return send_now(fd, bytes, size, flags);
  }

  static ssize_t send_last(int fd, const void* bytes, std::size_t size, int flags) {
    const std::size_t takes = std::min<std::size_t>(size, cut_left);
    const ssize_t taken = takes > 0 ? send_now(fd, bytes, takes, flags) : 0;
    if (taken > 0) cut_left -= static_cast<std::size_t>(taken);
    if (cut_left == 0) {
      cut_fd = -1;
      ::shutdown(fd, SHUT_RDWR);
    }
    if (taken != 0) return taken;
    errno = EPIPE;
    return -1;
  }

  static ssize_t send_now(int fd, const void* bytes, std::size_t size, int flags) {
    if (size > 0) return ::sendto(fd, bytes, size, flags, nullptr, 0);
    errno = EAGAIN;
    return -1;
  }
};

thread_local Sending* SendHook::here = nullptr;
std::atomic<int> SendHook::cut_fd{-1};
std::atomic<std::size_t> SendHook::cut_left{0};

Sending::Sending(std::size_t takes, std::function<void(int fd)> before)
    : takes_(takes), before_(std::move(before)) {
  SendHook::here = this;
}

Sending::~Sending() { SendHook::here = nullptr; }

Cut::Cut(int fd, std::size_t takes) {
  SendHook::cut_left = takes;
  SendHook::cut_fd = fd;
}

Cut::~Cut() { SendHook::cut_fd = -1; }

}  // namespace sluice::test

ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
  return sluice::test::SendHook::send(fd, bytes, size, flags);
}
