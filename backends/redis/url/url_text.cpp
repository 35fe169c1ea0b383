#include "backends/redis/url/url_text.hpp"

#include <stdexcept>

namespace sluice::redis_detail {
namespace {

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void refuse_url(const std::string& what) {
  throw std::invalid_argument("parse_redis_url: " + what);
}

std::optional<std::string_view> cut_front(std::string_view& rest, std::string_view mark) {
  const std::size_t end = rest.find(mark);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view front = rest.substr(0, end);
  rest.remove_prefix(end + mark.size());
  return front;
}

std::optional<std::string_view> cut_back(std::string_view& rest, char mark) {
  const std::size_t begin = rest.find(mark);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view back = rest.substr(begin + 1);
  rest = rest.substr(0, begin);
  return back;
}

std::string decoded(std::string_view text, const std::string& part) {
  std::string result;
  while (!text.empty()) {
    std::size_t length = 1;
    char c = text.front();
    if (c == '%') {
      const int high = text.size() > 2 ? hex_digit(text[1]) : -1;
      const int low = text.size() > 2 ? hex_digit(text[2]) : -1;
      if (high < 0 || low < 0) refuse_url("a % in " + part + " must be followed by two hex digits");
      c = static_cast<char>(high * 16 + low);
      length = 3;
    }
    if (c == '\0') refuse_url(part + " must not hold a zero byte");
    result += c;
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace sluice::redis_detail
