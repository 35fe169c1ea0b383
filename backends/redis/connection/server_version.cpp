#include "backends/redis/connection/server_version.hpp"

#include <charconv>
#include <system_error>

namespace sluice::redis_detail {

Hello read_hello(const ReplyValue& reply) noexcept {
  using Kind = Hello::Kind;
  if (reply.kind == ReplyValue::Kind::error) return {.kind = Kind::error, .error = reply.text};
  if (reply.kind == ReplyValue::Kind::status) return {.kind = Kind::other};
  if (reply.kind != ReplyValue::Kind::array) return {};
  Hello hello{.kind = Kind::map};
  for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    const std::string_view name = reply.elements[i].text;
    const std::string_view value = reply.elements[i + 1].text;
    if (name == "server") hello.server = value;
    if (name == "version") hello.version = value;
    if (name == "mode") hello.mode = value;
    if (name == "role") hello.role = value;
  }
  return hello;
}

std::string_view version_in_info(std::string_view text) noexcept {
  constexpr std::string_view field = "redis_version:";
  const std::size_t at = text.find(field);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + field.size());
  return rest.substr(0, rest.find_first_of("\r\n"));
}

bool is_too_old(std::string_view version) noexcept {
  unsigned major = 0;
  const auto* const end = version.data() + version.size();
  const auto [stop, error] = std::from_chars(version.data(), end, major);
  return error == std::errc{} && major < oldest_version;
}

}  // namespace sluice::redis_detail
