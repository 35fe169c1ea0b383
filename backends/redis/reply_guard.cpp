// The state machine of ReplyGuard.
#include "reply_guard.hpp"

#include <algorithm>

namespace sluice::redis_detail {

bool ReplyGuard::accept_type(char c) noexcept {
  seen_ = 0;
  length_ = 0;
  null_ = false;
  switch (c) {
    case '+':
    case '-':
    case ':':
      expect_ = Expect::line;
      return true;
    case '$':
      expect_ = Expect::length;
      return true;
    default:
      return false;
  }
}

bool ReplyGuard::accept_length(char c) noexcept {
  if (c == '\r') return seen_ > 0;
  if (c == '\n') {
    expect_ = null_ ? Expect::type : Expect::body;
    left_ = length_ + 2;
    return true;
  }
  ++seen_;
  if (c == '-' && seen_ == 1) {
    null_ = true;
    return true;
  }
  if (c < '0' || c > '9') return false;
  length_ = length_ * 10 + static_cast<std::size_t>(c - '0');
  return length_ <= max_bulk;
}

bool ReplyGuard::accept(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    if (expect_ == Expect::body) {
      const std::size_t taken = std::min(left_, bytes.size());
      bytes.remove_prefix(taken);
      left_ -= taken;
      if (left_ == 0) expect_ = Expect::type;
      continue;
    }
    const char c = bytes.front();
    bytes.remove_prefix(1);
    bool ok = true;
    switch (expect_) {
      case Expect::type:
        ok = accept_type(c);
        break;
      case Expect::length:
        ok = accept_length(c);
        break;
      case Expect::line:
        if (c == '\n') expect_ = Expect::type;
        ok = ++seen_ <= max_line;
        break;
      case Expect::body:
        break;
    }
    if (!ok) return false;
  }
  return true;
}

}  // namespace sluice::redis_detail
