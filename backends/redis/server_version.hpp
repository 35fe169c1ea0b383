// What the server says of itself at login. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::redis_detail {

/// The first version whose scripts may use all that the store's scripts do: those of variable
/// states write before they would find out.
constexpr unsigned oldest_version = 7;

/// The reply to HELLO 2, the one reply that is an array.
struct Hello {
  enum class Kind {
    incomplete,
    nonsense,
    map,    // of which `server` and `version` are kept, as far as they are there
    error,  // `error` is the line without its '-'
    other,  // some status, as of a proxy that answers everything with it
  };
  Kind kind = Kind::incomplete;
  std::string_view server{};
  std::string_view version{};
  std::string_view error{};
};

/// Looks at all bytes that have come; views of them.
[[nodiscard]] Hello read_hello(std::string_view bytes) noexcept;

/// Bytes of a reply to HELLO; more make no sense.
constexpr std::size_t max_hello = 16'384;

/// The version in the text that INFO gives; empty if there is none.
[[nodiscard]] std::string_view version_in_info(std::string_view text) noexcept;

/// True of "6.2.14". A version that does not begin with a number is not known to be too old.
[[nodiscard]] bool is_too_old(std::string_view version) noexcept;

}  // namespace sluice::redis_detail
