// PushReader: parses the pushes on a connection with subscriptions: arrays, and errors. Bounded:
// lengths beyond those of our channels are errors.
#pragma once

#include <string>
#include <string_view>

namespace sluice::redis_detail {

/// One push of the server. The channel is valid until the next one is read.
struct Push {
  enum class Kind {
    none,          // not complete yet
    message,       // a published message
    subscribed,    // messages follow
    unsubscribed,  // no more messages
    pong,          // the reply to PING
    error,         // -NOPERM ...: `channel` is its text
    broken         // no push that could be ours
  };
  Kind kind = Kind::none;
  std::string_view channel = {};
};

/// The stream of pushes of one connection. Not thread-safe.
class PushReader {
 public:
  /// Starts the stream of a new connection.
  void reset() noexcept;
  /// Adds received bytes. May throw std::bad_alloc.
  void feed(std::string_view bytes);
  /// The next complete push.
  [[nodiscard]] Push next();

  static constexpr std::size_t max_bulk = 4096;  // longer parts of keys are hashed

 private:
  std::string bytes_;
  std::size_t read_ = 0;  // of them
};

}  // namespace sluice::redis_detail
