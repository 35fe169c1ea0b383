// What is limited: a user, an account, an address, everything.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

/// A key in two parts. All keys with the same tag live on the same node of a cluster, so that one
/// plan may use them together; the name says what of the tag is limited.
///
///     bucket.try_acquire("alice")                    // Key{"alice", <the limiter's name>}
///     bucket.try_acquire(Key{"alice", "uploads"})
///
/// A view: the bytes must live until the call that takes the key has returned. Any bytes are
/// allowed in either part, 1 byte to 1 MiB; ("a", "b:c") and ("a:b", "c") are different keys, and
/// no byte of user input can choose the cluster's slot.
struct Key {
  std::string_view tag;
  /// May be left empty towards a limiter, which then puts its own name.
  std::string_view name;

  // NOLINTBEGIN(google-explicit-constructor): a string is a key
  constexpr Key(std::string_view key_tag, std::string_view key_name = {}) noexcept
      : tag(key_tag), name(key_name) {}
  constexpr Key(const char* key_tag) noexcept : tag(key_tag) {}
  Key(const std::string& key_tag) noexcept : tag(key_tag) {}
  // NOLINTEND(google-explicit-constructor)

  friend bool operator==(const Key&, const Key&) = default;

  static constexpr std::size_t max_part_bytes = std::size_t{1} << 20;
  /// A part longer than this is stored as its hash.
  static constexpr std::size_t max_plain_bytes = 128;
};

/// The secret of a keyed hash: processes that share a store must use the same one.
using HashKey = std::array<std::uint64_t, 2>;

/// True if both parts have 1 byte to 1 MiB.
[[nodiscard]] constexpr bool is_valid(const Key& key) noexcept {
  return !key.tag.empty() && !key.name.empty() && key.tag.size() <= Key::max_part_bytes &&
         key.name.size() <= Key::max_part_bytes;
}

/// Appends `{tag}:name` to `out`. Letters, digits and `-._~@+=,/` stand for themselves, every
/// other byte is written as %XX; a part longer than max_plain_bytes becomes `#` and the 32 hex
/// digits of its SipHash-2-4-128 under `secret`. Different keys never render alike (for hashed
/// parts: but for a collision of 128 bits). O(bytes).
void append_rendered(std::string& out, const Key& key, const HashKey& secret = {});

namespace detail {
/// A limiter's name as it was given. Throws std::invalid_argument if it is empty or longer than
/// 1 MiB.
[[nodiscard]] std::string valid_name(std::string name);
}  // namespace detail

/// append_rendered() as a string of its own.
[[nodiscard]] std::string render(const Key& key, const HashKey& secret = {});

}  // namespace sluice
