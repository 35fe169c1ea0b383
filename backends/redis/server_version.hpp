// The server's version at login. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::redis_detail {

/// The first version that supports all commands of the store's scripts: on an older one, those of
/// variable states would fail after a write.
constexpr unsigned oldest_version = 7;

/// The reply to HELLO 2, the only array reply.
struct Hello {
  enum class Kind {
    incomplete,
    nonsense,
    map,    // `server` and `version` are kept, if present
    error,  // `error` is the line without its '-'
    other,  // some status, as of a proxy that answers everything with it
  };
  Kind kind = Kind::incomplete;
  std::string_view server{};
  std::string_view version{};
  std::string_view error{};
};

/// Parses all received bytes; the result views them.
[[nodiscard]] Hello read_hello(std::string_view bytes) noexcept;

/// The most bytes of a reply to HELLO.
constexpr std::size_t max_hello = 16'384;

/// The version in the text of INFO; empty if there is none.
[[nodiscard]] std::string_view version_in_info(std::string_view text) noexcept;

/// True for "6.2.14". A version that does not begin with a number does not count as too old.
[[nodiscard]] bool is_too_old(std::string_view version) noexcept;

}  // namespace sluice::redis_detail
