// Inbox: the way of calls from their callers to the I/O thread, and of their memory back.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>

#include "backends/redis/protocol/call.hpp"

namespace sluice::redis_detail {

/// Thread-safe.
class Inbox {
 public:
  /// Moves up to `count` ended calls to `spare`.
  void take_spare(CallList& spare, std::size_t count) noexcept;
  /// Moves the calls in, unless it is closed.
  void deliver(std::span<CallPtr> calls) noexcept;
  /// True if no call is in it, nor on its way to a link: a later call may be written at once.
  [[nodiscard]] bool is_empty() noexcept;
  /// Moves all calls out. They are on their way until end_taking().
  void take(CallList& arrived) noexcept;
  void end_taking() noexcept;
  /// Keeps the memory of ended calls for the next ones.
  void recycle(CallList& ended) noexcept;
  /// No call enters any more.
  void close() noexcept;

 private:
  /// The most ended calls whose memory is kept, and the most bytes of each.
  static constexpr std::size_t max_pooled = 1024;
  static constexpr std::size_t max_pooled_bytes = 4096;

  std::mutex mutex_;
  CallList arrived_;
  CallList pool_;
  bool is_closed_ = false;
  bool is_taking_ = false;
};

}  // namespace sluice::redis_detail
