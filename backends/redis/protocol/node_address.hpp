// Checks of the addresses that a server names. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::redis_detail {

/// True if the text can be a host name or an IP address: 1 to 255 bytes of printable ASCII, no
/// space.
[[nodiscard]] bool is_host(std::string_view text) noexcept;

/// A decimal number of 1 to 65535.
[[nodiscard]] std::optional<std::uint16_t> read_port(std::string_view text) noexcept;

}  // namespace sluice::redis_detail
