#include "backends/redis/protocol/redirection.hpp"

#include <charconv>
#include <system_error>

#include "backends/redis/protocol/hash_slot.hpp"
#include "backends/redis/protocol/node_address.hpp"

namespace sluice::redis_detail {
namespace {

std::optional<std::uint16_t> read_slot(std::string_view text) noexcept {
  std::uint16_t slot = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, slot);
  if (error != std::errc{} || stop != end || slot >= hash_slots) return std::nullopt;
  return slot;
}

/// The host of "host", "[address]" or "". None if it cannot be one.
std::optional<std::string_view> read_host(std::string_view text) noexcept {
  if (text.empty()) return text;
  if (text.starts_with('[') != text.ends_with(']')) return std::nullopt;
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  if (!is_host(text) || text == "?") return std::nullopt;
  return text;
}

/// host:port; the port stands behind the last colon.
std::optional<RedisAddress> read_node(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto host = read_host(text.substr(0, colon));
  const auto port = read_port(text.substr(colon + 1));
  if (!host || !port) return std::nullopt;
  return RedisAddress{std::string(*host), *port};
}

}  // namespace

std::optional<Redirection> read_redirection(std::string_view error) {
  const bool is_ask = error.starts_with("ASK ");
  if (!is_ask && !error.starts_with("MOVED ")) return std::nullopt;
  error.remove_prefix(error.find(' ') + 1);
  const std::size_t space = error.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto slot = read_slot(error.substr(0, space));
  auto node = read_node(error.substr(space + 1));
  if (!slot || !node) return std::nullopt;
  return Redirection{is_ask, *slot, std::move(*node)};
}

}  // namespace sluice::redis_detail
