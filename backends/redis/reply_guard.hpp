// Bounds what the server may send before it reaches the RESP reader, which would buffer whatever
// a length prefix promises. Every reply that this store asks for is one line or one bulk string.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::redis_detail {

/// Follows the stream of replies byte by byte. Not thread-safe.
class ReplyGuard {
 public:
  /// False as soon as the stream cannot be one of ours any more: the connection must be dropped.
  [[nodiscard]] bool accept(std::string_view bytes) noexcept;

  /// A new connection starts with a new stream.
  void reset() noexcept { *this = {}; }

  static constexpr std::size_t max_line = 4096;   // an error message
  static constexpr std::size_t max_bulk = 16384;  // a plan's reply has at most 528 bytes

 private:
  enum class Expect { type, line, length, body };

  [[nodiscard]] bool accept_type(char c) noexcept;
  [[nodiscard]] bool accept_length(char c) noexcept;

  Expect expect_ = Expect::type;
  std::size_t seen_ = 0;    // bytes of the present line
  std::size_t length_ = 0;  // announced for the bulk string
  bool null_ = false;       // "$-1"
  std::size_t left_ = 0;    // of the bulk string and its line end
};

}  // namespace sluice::redis_detail
