#include "backends/redis/protocol/node_address.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace sluice::redis_detail {

bool is_host(std::string_view text) noexcept {
  constexpr std::size_t longest = 255;
  return !text.empty() && text.size() <= longest &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

std::optional<std::uint16_t> read_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc{} || stop != end || port == 0) return std::nullopt;
  return port;
}

}  // namespace sluice::redis_detail
