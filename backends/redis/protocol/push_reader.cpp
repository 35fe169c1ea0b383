#include "backends/redis/protocol/push_reader.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace sluice::redis_detail {
namespace {

constexpr std::size_t max_line = 1024;

/// Parses a push at the front of the received bytes.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : left_(bytes) {}

  enum class State { good, short_of_bytes, bad };
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] std::size_t left() const noexcept { return left_.size(); }

  /// A line without its end; empty if there is none. After an error it stays empty.
  std::string_view line() noexcept {
    if (state_ != State::good) return {};
    const std::size_t end = left_.substr(0, max_line).find("\r\n");
    if (end == std::string_view::npos) {
      state_ = left_.size() < max_line ? State::short_of_bytes : State::bad;
      return {};
    }
    const std::string_view line = left_.substr(0, end);
    left_.remove_prefix(end + 2);
    return line;
  }

  /// A line of this type with a number up to `most`.
  std::size_t number(char type, std::size_t most) noexcept {
    const std::string_view text = line();
    if (state_ != State::good) return 0;
    std::size_t value = 0;
    const auto* const end = text.data() + text.size();
    const auto read =
        std::from_chars(text.data() + std::min(text.size(), std::size_t{1}), end, value);
    const bool fits = text.size() > 1 && text[0] == type && read.ec == std::errc{} &&
                      read.ptr == end && value <= most;
    if (!fits) state_ = State::bad;
    return value;
  }

  std::string_view bulk() noexcept {
    const std::size_t size = number('$', PushReader::max_bulk);
    if (state_ != State::good) return {};
    if (left_.size() < size + 2) {
      state_ = State::short_of_bytes;
      return {};
    }
    const std::string_view text = left_.substr(0, size);
    if (left_.substr(size, 2) != "\r\n") state_ = State::bad;
    left_.remove_prefix(size + 2);
    return text;
  }

 private:
  std::string_view left_;
  State state_ = State::good;
};

Push read(Cursor& cursor, char type) noexcept {
  if (type == '-') {
    const std::string_view line = cursor.line();
    return {Push::Kind::error, line.substr(line.empty() ? 0 : 1)};
  }
  if (type == '+') {  // without any subscription
    const bool is_pong = cursor.line() == "+PONG";
    return {is_pong ? Push::Kind::pong : Push::Kind::broken};
  }
  const std::size_t elements = cursor.number('*', 3);
  const std::string_view kind = cursor.bulk();
  const std::string_view channel = cursor.bulk();
  if (cursor.state() != Cursor::State::good) return {};
  if (elements == 2 && kind == "pong") return {Push::Kind::pong};
  if (elements != 3) return {Push::Kind::broken};
  if (kind == "message") {
    cursor.bulk();
    return {Push::Kind::message, channel};
  }
  const bool subscribed = kind == "subscribe";
  if (!subscribed && kind != "unsubscribe") return {Push::Kind::broken};
  cursor.number(':', ~std::size_t{0});
  return {subscribed ? Push::Kind::subscribed : Push::Kind::unsubscribed, channel};
}

}  // namespace

void PushReader::reset() noexcept {
  bytes_.clear();
  read_ = 0;
}

void PushReader::feed(std::string_view bytes) {
  bytes_.erase(0, read_);
  read_ = 0;
  bytes_ += bytes;
}

Push PushReader::next() {
  const std::string_view left = std::string_view(bytes_).substr(read_);
  if (left.empty()) return {};
  Cursor cursor(left);
  const Push push = read(cursor, left.front());
  if (cursor.state() == Cursor::State::bad) return {Push::Kind::broken};
  if (cursor.state() == Cursor::State::short_of_bytes) return {};
  read_ += left.size() - cursor.left();
  return push;
}

}  // namespace sluice::redis_detail
