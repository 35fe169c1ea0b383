#include "backends/redis/protocol/info_reply.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace sluice::redis_detail {
namespace {

/// The number, if the text is one from its first to its last byte.
std::optional<std::uint64_t> number_of(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

void read_line(std::string_view line, InfoReply& reply) noexcept {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = line.substr(colon + 1);
  const auto keep = [&](std::string_view& field) {
    if (field.empty()) field = value;
  };
  if (name == "redis_version") keep(reply.version);
  if (name == "role") keep(reply.role);
  if (name == "maxmemory_policy") keep(reply.maxmemory_policy);
  if (name == "evicted_keys" && !reply.evicted_keys) reply.evicted_keys = number_of(value);
}

}  // namespace

InfoReply read_info(std::string_view text) noexcept {
  InfoReply reply;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    read_line(text.substr(0, end), reply);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reply;
}

}  // namespace sluice::redis_detail
