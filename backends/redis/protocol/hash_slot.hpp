// The slot of a key in Redis Cluster. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::redis_detail {

constexpr std::size_t hash_slots = 16'384;

/// CRC16 (XMODEM) modulo hash_slots of the key's tag, which stands between the first `{` and the
/// next `}`; of the whole key if it has no tag or an empty one.
[[nodiscard]] std::uint16_t hash_slot(std::string_view key) noexcept;

}  // namespace sluice::redis_detail
