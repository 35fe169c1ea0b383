// SipHash (Aumasson, Bernstein 2012) with 128-bit output: a keyed hash, so that whoever chooses
// keys cannot choose collisions. SipHash-2-4 for hashes that leave the process, 1-3 for tables.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::detail {

template <int compression, int finalization>
class SipHash {
 public:
  explicit SipHash(const std::array<std::uint64_t, 2>& key) noexcept
      : v_{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d ^ 0xee,
           key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573} {}

  /// Hashes one message; call it once.
  [[nodiscard]] std::array<std::uint64_t, 2> operator()(std::string_view message) noexcept {
    absorb(message);
    return finish();
  }

  /// Hashes two or three parts as one message that is unique to them: the lengths of the first two,
  /// below 2^32, are its prefix, and an empty third part is omitted. Call it once.
  [[nodiscard]] std::array<std::uint64_t, 2> operator()(std::string_view first,
                                                        std::string_view second,
                                                        std::string_view third = {}) noexcept {
    compress(std::uint64_t{first.size()} | std::uint64_t{second.size()} << 32);
    absorb(first);
    absorb(second);
    if (!third.empty()) absorb(third);
    return finish();
  }

 private:
  static std::uint64_t load(const char* bytes, std::size_t count) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, count);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word;
  }

  /// Loads 0 to 7 bytes without a loop: overlapping loads agree on their common bytes.
  static std::uint64_t load_tail(const char* bytes, std::size_t count) noexcept {
    const auto byte = [bytes](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(bytes[i])} << (i * 8);
    };
    if (count == 0) return 0;
    if (count < 4) return byte(0) | byte(count / 2) | byte(count - 1);
    return load(bytes, 4) | load(bytes + count - 4, 4) << ((count - 4) * 8);
  }

  void round() noexcept {
    v_[0] += v_[1];
    v_[1] = std::rotl(v_[1], 13) ^ v_[0];
    v_[0] = std::rotl(v_[0], 32);
    v_[2] += v_[3];
    v_[3] = std::rotl(v_[3], 16) ^ v_[2];
    v_[0] += v_[3];
    v_[3] = std::rotl(v_[3], 21) ^ v_[0];
    v_[2] += v_[1];
    v_[1] = std::rotl(v_[1], 17) ^ v_[2];
    v_[2] = std::rotl(v_[2], 32);
  }

  void compress(std::uint64_t word) noexcept {
    v_[3] ^= word;
    for (int i = 0; i < compression; ++i) round();
    v_[0] ^= word;
  }

  /// Whole words, then the tail with the length in its top byte, as the algorithm ends a message.
  void absorb(std::string_view message) noexcept {
    const char* p = message.data();
    std::size_t left = message.size();
    for (; left >= 8; left -= 8, p += 8) compress(load(p, 8));
    compress(load_tail(p, left) | std::uint64_t{message.size() & 0xff} << 56);
  }

  [[nodiscard]] std::array<std::uint64_t, 2> finish() noexcept {
    v_[2] ^= 0xee;
    for (int i = 0; i < finalization; ++i) round();
    const std::uint64_t low = v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
    v_[1] ^= 0xdd;
    for (int i = 0; i < finalization; ++i) round();
    return {low, v_[0] ^ v_[1] ^ v_[2] ^ v_[3]};
  }

  std::array<std::uint64_t, 4> v_;
};

using SipHash24 = SipHash<2, 4>;
using SipHash13 = SipHash<1, 3>;

}  // namespace sluice::detail
