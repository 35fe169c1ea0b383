// The state machine of ReplyGuard.
#include "backends/redis/protocol/reply_guard.hpp"

#include <algorithm>

namespace sluice::redis_detail {

bool ReplyGuard::accept_type(char c) noexcept {
  seen_ = 0;
  left_ = 0;
  switch (c) {
    case '+':
    case '-':
      expect_ = Expect::line;
      next_ = Expect::type;
      return true;
    case ':':
      expect_ = Expect::number;
      next_ = Expect::type;
      return true;
    case '$':
      expect_ = Expect::length;
      next_ = Expect::body;
      return true;
    default:
      return false;
  }
}

/// Digits only: no sign, and no leading zeros, which could be endless.
bool ReplyGuard::accept_length(char c) noexcept {
  if (c == '\r') {
    expect_ = Expect::line_feed;
    return seen_ > 0;
  }
  if (c < '0' || c > '9' || (seen_ > 0 && left_ == 0)) return false;
  ++seen_;
  left_ = left_ * 10 + static_cast<std::size_t>(c - '0');
  return left_ <= max_bulk;
}

/// The same for an integer reply: every parser accepts it alike.
bool ReplyGuard::accept_number(char c) noexcept {
  constexpr std::size_t max_digits = 18;
  if (c == '\r') {
    expect_ = Expect::line_feed;
    return seen_ > 0;
  }
  if (c < '0' || c > '9' || (seen_ > 0 && left_ == 0)) return false;
  left_ = left_ * 10 + static_cast<std::size_t>(c - '0');
  return ++seen_ <= max_digits;
}

bool ReplyGuard::accept_byte(char c) noexcept {
  switch (expect_) {
    case Expect::type:
      return accept_type(c);
    case Expect::line:
      // A bare line feed would end the line here, but not in the reader.
      if (c == '\r') expect_ = Expect::line_feed;
      return c != '\n' && ++seen_ <= max_line;
    case Expect::number:
      return accept_number(c);
    case Expect::length:
      return accept_length(c);
    case Expect::line_feed:
      expect_ = next_ == Expect::body && left_ == 0 ? Expect::body_end : next_;
      return c == '\n';
    case Expect::body_end:
      expect_ = Expect::line_feed;
      next_ = Expect::type;
      return c == '\r';
    case Expect::body:
      break;
  }
  return false;
}

std::size_t ReplyGuard::accept(std::string_view bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes.size()) {
    if (expect_ == Expect::body) {
      const std::size_t taken = std::min(left_, bytes.size() - done);
      done += taken;
      left_ -= taken;
      if (left_ == 0) expect_ = Expect::body_end;
    } else if (accept_byte(bytes[done])) {
      ++done;
    } else {
      break;
    }
  }
  return done;
}

}  // namespace sluice::redis_detail
