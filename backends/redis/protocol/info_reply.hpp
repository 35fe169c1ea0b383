// What a reply to INFO says of the server's health. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::redis_detail {

/// Views of the reply, whose bytes are the server's: they are not sanitised yet.
struct InfoReply {
  std::string_view version{};  // "7.2.4"; empty texts: the field is missing
  std::string_view role{};     // "master", "slave"
  std::string_view maxmemory_policy{};
  std::optional<std::uint64_t> evicted_keys{};
};

/// Reads the text of INFO, of any sections: lines of "field:value" and "# Section". Of a field that
/// occurs twice the first counts, and lines of another form are skipped. O(bytes).
[[nodiscard]] InfoReply read_info(std::string_view text) noexcept;

}  // namespace sluice::redis_detail
