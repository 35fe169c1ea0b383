// KeyName: the rendered name of a key, taken apart as append_rendered() put it together. Plain
// values; no threading rule.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/key.hpp"

namespace sluice::detail {

/// `prefix{tag}:name[:unit]`. The prefix is RedisOptions::key_prefix.
struct KeyName {
  /// Empty if no limiter writes a key of this name.
  [[nodiscard]] static std::optional<KeyName> parse(std::string_view text);

  std::string text;    ///< the whole, as it is in Redis
  std::string prefix;  ///< the parts with their own bytes
  std::string tag;
  std::string name;
  std::string unit;
  /// A part was longer than Key::max_plain_bytes: its hash is in its place, and nobody can tell the
  /// part itself.
  bool is_hashed = false;

  /// A view. Its text is not that in Redis if a part is hashed.
  [[nodiscard]] Key key() const noexcept {
    return Key{tag, std::string_view(name)}.with_unit(std::string_view(unit));
  }
  /// The name of the limiter and, if it has one, the unit, as rendered: "api:10/s". For gates,
  /// whose names are those of scopes, the same.
  [[nodiscard]] std::string_view limit() const noexcept {
    return std::string_view(text).substr(text.find("}:") + 2);
  }
};

}  // namespace sluice::detail
