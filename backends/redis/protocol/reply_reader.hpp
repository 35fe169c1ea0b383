// ReplyReader: hiredis' reader behind the guard, without an allocation per reply.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/redis/protocol/reply_guard.hpp"

struct redisReader;

namespace sluice::redis_detail {

/// One reply of the server. The text is valid until the next reply is read.
struct ServerReply {
  enum class Kind {
    none,     // not complete yet
    status,   // +OK
    error,    // -ERR ...
    string,   // $...
    integer,  // :1
    broken    // no reply that could be ours
  };
  Kind kind = Kind::none;
  std::string_view text = {};
};

/// The stream of replies of one connection. Not thread-safe.
class ReplyReader {
 public:
  /// Starts the stream of a new connection. Throws std::bad_alloc.
  void reset();

  /// Adds received bytes. False if they are invalid after the replies of next(): the connection
  /// must be closed after these. REQUIRES: reset() was called, next() has returned the earlier
  /// replies, and the bytes live until it has returned theirs.
  [[nodiscard]] bool feed(std::string_view bytes);

  /// The next complete reply.
  [[nodiscard]] ServerReply next();

 private:
  struct Free {
    void operator()(redisReader* reader) const noexcept;
  };
  struct Hooks;

  [[nodiscard]] bool parse_more() noexcept;

  ReplyGuard guard_;
  std::string_view unparsed_;  // received bytes that hiredis does not have yet
  std::unique_ptr<redisReader, Free> reader_;
  ServerReply::Kind kind_ = ServerReply::Kind::none;
  std::string text_;
};

}  // namespace sluice::redis_detail
