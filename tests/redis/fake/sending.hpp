// What becomes of the bytes that the store sends: the test program's send() looks here first.
// Threading: a Sending counts for the thread that made it, a Cut for all threads.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <limits>

namespace sluice::test {

/// What becomes of the sends of the thread that made it, while it lives.
class Sending {
 public:
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  /// Each send takes `takes` bytes at most, after `before` has been called with its socket.
  explicit Sending(std::size_t takes = all, std::function<void(int fd)> before = {});
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;
  ~Sending();

  [[nodiscard]] bool happened() const noexcept { return sends_ > 0; }
  /// The socket and the size of the last send.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  friend struct SendHook;

  std::size_t takes_;
  std::function<void(int)> before_;
  std::size_t sends_ = 0;
  int fd_ = -1;
  std::size_t size_ = 0;
};

/// While it lives, a socket takes so many bytes more, whoever sends them, and then it is shut down.
class Cut {
 public:
  Cut(int fd, std::size_t takes);
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;
  ~Cut();
};

}  // namespace sluice::test
