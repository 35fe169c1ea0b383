// The key of a limit: a user, an account, an address, or a constant for a global limit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

#include "sluice/detail/arguments.hpp"

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// A key names what is limited. It has two parts, a tag and a name. All keys of one tag live on the
/// same node of a cluster, so that one plan can use them together; the name distinguishes the
/// limits of a tag. A limiter adds its own name where the key has none, and the unit of what it
/// counts, such as its rate: another rate is another count.
///
///     bucket.try_acquire("alice")                    // Key{"alice", <the limiter's name>}
///     bucket.try_acquire(Key{"alice", "uploads"})
///     bucket.try_acquire(42)                         // the tag is "42"
///
/// A key is a view: its bytes must live as long as it does, and as the steps that are made of it. A
/// key of a temporary string does not compile; as the argument of a call (KeyArg), such a string
/// does, because it lives until the call has returned. Only the digits of a number are stored in
/// the key itself. Both parts allow any bytes, 1 byte to 1 MiB; ("a", "b:c") and ("a:b", "c") are
/// different keys, and no byte of a tag can select another slot of the cluster than its own.
class Key {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a string or a number is a key
  /// With an empty name, a limiter uses its own name.
  constexpr Key(std::string_view tag, detail::LastingText name = {}) noexcept
      : text_(tag.data()), size_(tag.size()), name_(name) {}
  /// A null pointer is an empty tag, and the call fails with Errc::invalid_key.
  constexpr Key(const char* tag, detail::LastingText name = {}) noexcept
      : Key(detail::TextArg(tag).view(), name) {}
  Key(const std::string& tag) noexcept : Key(std::string_view(tag)) {}
  template <detail::OwningTemporary T>
  Key(T&&, detail::LastingText = {}) = delete;  // a view: put the string into a variable first
  Key(std::nullptr_t, detail::LastingText = {}) = delete;
  /// The tag is the number in decimal digits, after a `-` if it is negative.
  template <CountType T>
  Key(T number, detail::LastingText name = {}) noexcept
      : text_(nullptr), name_(name), is_number_(true) {
    if constexpr (std::is_signed_v<T>) {
      write(std::int64_t{number});
    } else {
      write(std::uint64_t{number});
    }
  }
  // NOLINTEND(google-explicit-constructor)

  /// Views, also of the digits of a number, which live as long as the key.
  [[nodiscard]] constexpr std::string_view tag() const noexcept {
    return {is_number_ ? digits_.data() : text_, size_};
  }
  [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }
  /// The unit in which the state under the key is counted: "10/s" for a token bucket,
  /// "1s+1min,grants" for sliding windows. Limiters set it. It is empty where states do not depend
  /// on the configuration.
  [[nodiscard]] constexpr std::string_view unit() const noexcept { return {unit_, unit_size_}; }
  /// The same key, with this name if it has none of its own.
  [[nodiscard]] constexpr Key with_default_name(detail::TextArg name) const noexcept {
    Key key = *this;
    key.set_default_name(name);
    return key;
  }
  /// The same key with this unit, cut to max_unit_bytes.
  [[nodiscard]] constexpr Key with_unit(detail::TextArg unit) const noexcept {
    Key key = *this;
    key.set_unit(unit);
    return key;
  }

  friend constexpr bool operator==(const Key& a, const Key& b) noexcept {
    return a.tag() == b.tag() && a.name() == b.name() && a.unit() == b.unit();
  }
  /// Writes to_string(). A hidden friend, so that strings are not converted to keys.
  friend std::ostream& operator<<(std::ostream& out, const Key& key);

  static constexpr std::size_t max_part_bytes = std::size_t{1} << 20;
  /// A part longer than this is stored as its hash.
  static constexpr std::size_t max_plain_bytes = 128;
  static constexpr std::size_t max_unit_bytes = 255;

 protected:
  constexpr void set_default_name(detail::TextArg name) noexcept {
    if (name_.empty()) name_ = name;
  }
  constexpr void set_unit(detail::TextArg unit) noexcept {
    unit_ = unit.view().data();
    const std::size_t size = unit.view().size();
    unit_size_ = static_cast<std::uint8_t>(size < max_unit_bytes ? size : max_unit_bytes);
  }

 private:
  void write(std::int64_t number) noexcept;
  void write(std::uint64_t number) noexcept;

  const char* text_;
  std::size_t size_;
  std::string_view name_;
  const char* unit_ = nullptr;
  std::uint8_t unit_size_ = 0;
  bool is_number_ = false;         // then the tag is in digits_, else in text_
  std::array<char, 20> digits_{};  // of 64 bits and a sign
};

/// The key of a call that has used it when it returns: the type of a parameter, not of variables.
/// It converts from all that a Key is made of, and from temporary strings too, without a copy:
///
///     bucket.try_acquire("user-" + id)
///     bucket.try_acquire({"user-" + id, "uploads"})
class KeyArg : public Key {
 public:
  // NOLINTBEGIN(google-explicit-constructor): as a Key
  constexpr KeyArg(const Key& key) noexcept : Key(key) {}
  constexpr KeyArg(std::string_view tag, detail::TextArg name = {}) noexcept
      : Key(tag, name.view()) {}
  constexpr KeyArg(const char* tag, detail::TextArg name = {}) noexcept : Key(tag, name.view()) {}
  KeyArg(const std::string& tag) noexcept : Key(tag) {}
  KeyArg(std::nullptr_t, detail::TextArg = {}) = delete;
  template <CountType T>
  KeyArg(T number, detail::TextArg name = {}) noexcept : Key(number, name.view()) {}
  // NOLINTEND(google-explicit-constructor)
};

/// The secret of a keyed hash. Processes that share a store must use the same secret.
using HashKey = std::array<std::uint64_t, 2>;

/// True if both parts are 1 byte to 1 MiB long.
[[nodiscard]] constexpr bool is_valid(const Key& key) noexcept {
  return !key.tag().empty() && !key.name().empty() && key.tag().size() <= Key::max_part_bytes &&
         key.name().size() <= Key::max_part_bytes;
}

/// Appends `{tag}:name` to `out`, or `{tag}:name:unit` if the key has a unit. Letters, digits and
/// `-._~@+=,/` are written as they are, every other byte as %XX; a part longer than max_plain_bytes
/// becomes `#` and the 32 hex digits of its SipHash-2-4-128 under `secret`. Different keys never
/// render to the same text, except for a 128-bit collision of hashed parts. O(bytes).
void append_rendered(std::string& out, const Key& key, const HashKey& secret = {});

namespace detail {
/// Reservation::key_mark of a key with its limiter's name; never 0.
[[nodiscard]] std::uint64_t key_mark(const Key& key) noexcept;
/// Returns the name of a limiter. Throws std::invalid_argument if it is empty or longer than 1 MiB.
[[nodiscard]] std::string valid_name(TextArg name);
}  // namespace detail

/// append_rendered() to an empty string.
[[nodiscard]] std::string render(const Key& key, const HashKey& secret = {});

/// render(key) for logs, such as "{alice}:uploads:10/s".
[[nodiscard]] std::string to_string(const Key& key);

}  // namespace sluice
