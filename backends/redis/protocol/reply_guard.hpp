// ReplyGuard: bounds the server's bytes before the RESP reader, which would buffer as much as a
// length prefix announces. Every expected reply is one line, an integer, or one bulk string.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::redis_detail {

/// Validates the stream of replies byte by byte. It accepts a sequence of "+text\r\n", "-text\r\n",
/// ":number\r\n" and "$length\r\nbytes\r\n", so that the reader never buffers more than one reply
/// and always agrees on where a reply ends. Not thread-safe.
class ReplyGuard {
 public:
  /// How many of the bytes are valid. Fewer than all: the stream is invalid, and the connection
  /// must be closed after the replies before that byte.
  [[nodiscard]] std::size_t accept(std::string_view bytes) noexcept;

  /// Starts the stream of a new connection.
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
  Expect next_ = Expect::type;  // after the end of this line
  std::size_t seen_ = 0;        // bytes of this line
  std::size_t left_ = 0;        // bytes left of the bulk string
};

}  // namespace sluice::redis_detail
