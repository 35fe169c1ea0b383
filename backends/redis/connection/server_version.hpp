// The server's version at login. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/redis/protocol/array_reply.hpp"

namespace sluice::redis_detail {

/// The first version that supports all commands of the store's scripts: on an older one, those of
/// variable states would fail after a write.
constexpr unsigned oldest_version = 7;

/// The reply to HELLO 2.
struct Hello {
  enum class Kind : std::uint8_t {
    nonsense,
    map,    // the fields that are present are kept
    error,  // `error` is the line without its '-'
    other,  // some status, as of a proxy that answers everything with it
  };
  Kind kind = Kind::nonsense;
  std::string_view server{};   // "redis"
  std::string_view version{};  // "7.2.4"
  std::string_view mode{};     // "standalone", "sentinel", "cluster"
  std::string_view role{};     // "master", "replica"
  std::string_view error{};
};

/// The result views the reply.
[[nodiscard]] Hello read_hello(const ReplyValue& reply) noexcept;

/// The version in the text of INFO; empty if there is none.
[[nodiscard]] std::string_view version_in_info(std::string_view text) noexcept;

/// True for "6.2.14". A version that does not begin with a number does not count as too old.
[[nodiscard]] bool is_too_old(std::string_view version) noexcept;

}  // namespace sluice::redis_detail
