// Structured fields (RFC 9651): lists and dictionaries of items with parameters. Views of the
// value, no allocation. Inner lists are not supported: no header about limits has them.
#pragma once

#include <optional>
#include <string_view>

#include "sluice/http/feedback.hpp"

namespace sluice::http::detail {

struct BareItem {
  enum class Type : std::uint8_t {
    integer,
    decimal,
    string,
    token,
    bytes,
    boolean,
    date,
    display_string
  };
  Type type = Type::boolean;
  Word number = 0;         ///< of an integer, a boolean, a date
  std::string_view raw{};  ///< as it stands there, without its quotes or colons

  /// The text of a string or token, or the bytes of a byte sequence. False if it has another type
  /// or is too long.
  [[nodiscard]] bool copy_to(Text& out) const noexcept;
};

/// An item and its parameters.
struct Member {
  std::string_view key{};  ///< in a dictionary
  BareItem item{};
  std::string_view parameters{};

  /// The last parameter of this name. O(parameters).
  [[nodiscard]] std::optional<BareItem> parameter(std::string_view name) const noexcept;
};

/// Reads the members one by one. Members after a syntax error are not read, and by RFC 9651 those
/// before it are invalid as well: call sound() first.
class MemberReader {
 public:
  enum class Shape : std::uint8_t { list, dictionary };

  MemberReader(std::string_view value, Shape shape) noexcept;

  /// False at the end, or at a syntax error.
  bool next(Member& member) noexcept;
  [[nodiscard]] bool failed() const noexcept { return failed_; }

  /// True if the whole value is well-formed. An empty list is.
  [[nodiscard]] static bool sound(std::string_view value, Shape shape) noexcept;

 private:
  bool read(Member& member) noexcept;

  std::string_view rest_;
  Shape shape_;
  bool failed_ = false;
};

}  // namespace sluice::http::detail
