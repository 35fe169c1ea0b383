// What a server says on a connection that has subscribed: arrays, and errors. Bounded: a stream
// that promises more than a channel's name and a few words is not ours.
#pragma once

#include <string>
#include <string_view>

namespace sluice::redis_detail {

/// One thing that the server said. The channel lives until the next one is asked for.
struct Push {
  enum class Kind {
    none,          // not complete yet
    message,       // somebody published
    subscribed,    // from here on messages come
    unsubscribed,  // from here on none
    error,         // -NOPERM ...: `channel` is its text
    broken         // no push that could be ours
  };
  Kind kind = Kind::none;
  std::string_view channel = {};
};

/// The stream of pushes of one connection. Not thread-safe.
class PushReader {
 public:
  /// A new connection starts with a new stream.
  void reset() noexcept;
  /// Takes bytes from the wire. May throw std::bad_alloc.
  void feed(std::string_view bytes);
  /// The next complete push.
  [[nodiscard]] Push next();

  static constexpr std::size_t max_bulk = 4096;  // longer parts of keys are hashed

 private:
  std::string bytes_;
  std::size_t read_ = 0;  // of them
};

}  // namespace sluice::redis_detail
