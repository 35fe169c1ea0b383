// Quotes text of a user for messages. Threading: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace sluice::detail {

/// The first 64 bytes in quotes, with everything but printable ASCII as `\xNN`.
inline std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 64;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown = "\"";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      shown += c;
    } else {
      shown += {'\\', 'x', digits[byte >> 4U], digits[byte & 0xfU]};
    }
  }
  return shown + (text.size() > longest ? "...\"" : "\"");
}

}  // namespace sluice::detail
