// Bounds what the server may send before it reaches the RESP reader, which would buffer whatever
// a length prefix promises. Every reply that this store asks for is one line, a number of its
// own, or one bulk string.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::redis_detail {

/// Follows the stream of replies byte by byte. What it accepts is a sequence of "+text\r\n",
/// "-text\r\n", ":number\r\n" and "$length\r\nbytes\r\n", so that the reader behind it never holds
/// more than one reply and never disagrees on where a reply ends. Not thread-safe.
class ReplyGuard {
 public:
  /// How many of the bytes may go to the reader. Fewer than all: the stream cannot be ours any
  /// more, and the connection must be dropped once the replies before that byte are heard.
  [[nodiscard]] std::size_t accept(std::string_view bytes) noexcept;

  /// A new connection starts with a new stream.
  void reset() noexcept { *this = {}; }

  static constexpr std::size_t max_line = 4096;   // an error message
  static constexpr std::size_t max_bulk = 16384;  // a plan's reply has at most 528 bytes

 private:
  enum class Expect { type, line, number, length, line_feed, body, body_end };

  [[nodiscard]] bool accept_byte(char c) noexcept;
  [[nodiscard]] bool accept_type(char c) noexcept;
  [[nodiscard]] bool accept_number(char c) noexcept;
  [[nodiscard]] bool accept_length(char c) noexcept;

  Expect expect_ = Expect::type;
  Expect next_ = Expect::type;  // behind the present line end
  std::size_t seen_ = 0;        // bytes of the present line
  std::size_t left_ = 0;        // of the bulk string
};

}  // namespace sluice::redis_detail
