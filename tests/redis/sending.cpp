// The program's own send().
#include "tests/redis/sending.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sluice::test {

struct SendHook {
  static thread_local Sending* here;
  static std::atomic<Cut*> cut;

  static ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
    if (here != nullptr) {
      ++here->sends_;
      here->fd_ = fd;
      here->size_ = size;
      if (here->before_) here->before_(fd);
      size = std::min(size, here->takes_);
    }
    Cut* const cutting = cut;
    if (cutting != nullptr && fd == cutting->fd_ && !cutting->over_) {
      return send_last(*cutting, bytes, size, flags);
    }
    return send_now(fd, bytes, size, flags);
  }

  static ssize_t send_last(Cut& cutting, const void* bytes, std::size_t size, int flags) {
    const std::size_t takes = std::min<std::size_t>(size, cutting.left_);
    const ssize_t taken = takes > 0 ? send_now(cutting.fd_, bytes, takes, flags) : 0;
    if (taken > 0) cutting.left_ -= static_cast<std::size_t>(taken);
    if (cutting.left_ == 0) {
      cutting.over_ = true;
      ::shutdown(cutting.fd_, SHUT_RDWR);
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
std::atomic<Cut*> SendHook::cut{nullptr};

Sending::Sending(std::size_t takes, std::function<void(int fd)> before)
    : takes_(takes), before_(std::move(before)) {
  SendHook::here = this;
}

Sending::~Sending() { SendHook::here = nullptr; }

Cut::Cut(int fd, std::size_t takes) : fd_(fd), left_(takes) { SendHook::cut = this; }

Cut::~Cut() { SendHook::cut = nullptr; }

}  // namespace sluice::test

ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
  return sluice::test::SendHook::send(fd, bytes, size, flags);
}
