#include "backends/redis/protocol/hash_slot.hpp"

#include <array>

namespace sluice::redis_detail {
namespace {

/// The remainders of each byte by x^16 + x^12 + x^5 + 1.
constexpr std::array<std::uint16_t, 256> make_remainders() noexcept {
  std::array<std::uint16_t, 256> remainders{};
  for (unsigned byte = 0; byte < remainders.size(); ++byte) {
    unsigned rest = byte << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      rest = (rest << 1U) ^ ((rest & 0x8000U) != 0 ? 0x1021U : 0U);
    }
    remainders[byte] = static_cast<std::uint16_t>(rest);
  }
  return remainders;
}

constexpr auto remainders = make_remainders();

std::string_view tag_of(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace

std::uint16_t hash_slot(std::string_view key) noexcept {
  unsigned crc = 0;
  for (const char c : tag_of(key)) {
    const unsigned index = (crc >> 8U) ^ static_cast<unsigned char>(c);
    crc = ((crc << 8U) & 0xffffU) ^ remainders[index];
  }
  return static_cast<std::uint16_t>(crc % hash_slots);
}

}  // namespace sluice::redis_detail
