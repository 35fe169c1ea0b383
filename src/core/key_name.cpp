// See key_name.hpp.
#include "src/core/key_name.hpp"

#include <algorithm>

namespace sluice::detail {
namespace {

constexpr std::size_t hash_digits = 32;

int digit_of(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool is_hash(std::string_view part) noexcept {
  return part.size() == 1 + hash_digits && part[0] == '#' &&
         std::all_of(part.begin() + 1, part.end(), [](char c) { return digit_of(c) >= 0; });
}

/// The bytes of a part. What append_rendered() would not have written is found by rendering again.
std::string bytes_of(std::string_view part) {
  std::string bytes;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool is_escape = part[i] == '%' && i + 2 < part.size() && digit_of(part[i + 1]) >= 0 &&
                           digit_of(part[i + 2]) >= 0;
    if (is_escape) {
      bytes += static_cast<char>(digit_of(part[i + 1]) * 16 + digit_of(part[i + 2]));
      i += 2;
    } else {
      bytes += part[i];
    }
  }
  return bytes;
}

/// The part itself, or its hash as it is. False if no limiter writes it.
bool read(std::string_view rendered, std::string& part, bool& is_hashed) {
  if (is_hash(rendered)) {
    is_hashed = true;
    part = rendered;
    return true;
  }
  part = bytes_of(rendered);
  return !part.empty() && render(Key{part, "n"}) == "{" + std::string(rendered) + "}:n";
}

}  // namespace

std::optional<KeyName> KeyName::parse(std::string_view text) {
  const std::size_t open = text.find('{');
  const std::size_t close = text.find('}');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 > text.size() || text[close + 1] != ':') {
    return std::nullopt;
  }
  KeyName result;
  result.text = text;
  result.prefix = text.substr(0, open);
  const std::string_view rest = text.substr(close + 2);
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  if (!read(text.substr(open + 1, close - open - 1), result.tag, result.is_hashed) ||
      !read(rest.substr(0, colon), result.name, result.is_hashed)) {
    return std::nullopt;
  }
  if (colon < rest.size() && !read(rest.substr(colon + 1), result.unit, result.is_hashed)) {
    return std::nullopt;
  }
  return result;
}

}  // namespace sluice::detail
