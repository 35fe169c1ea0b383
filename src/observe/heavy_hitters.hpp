// HeavyHitters: the most frequent keys of a stream, by limiter, in bounded memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::detail {

/// The sketch Space-Saving (A. Metwally, D. Agrawal, A. El Abbadi, "Efficient Computation of
/// Frequent and Top-k Elements in Data Streams", ICDT 2005). Of N updates with m counters, a
/// counter is at most N / m too high and never too low, and every key with more than N / m updates
/// has one. O(log m) an update; only the constructor allocates. Single-threaded.
class HeavyHitters {
 public:
  struct Counter {
    std::string limiter{};
    std::string key{};
    std::uint64_t count = 0;
    std::uint64_t error = 0;  ///< by which the count may be too high
    std::uint64_t hash = 0;
    std::uint32_t place = 0;  ///< in the heap
  };

  /// Names of limiters and keys have at most `longest` bytes. REQUIRES: 1 to 2^20 counters.
  HeavyHitters(std::size_t counters, std::size_t longest);

  /// `hash` is of both.
  void add(std::string_view limiter, std::string_view key, std::uint64_t hash) noexcept;
  /// In no order.
  [[nodiscard]] std::span<const Counter> counters() const noexcept {
    return {counters_.data(), heap_.size()};
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  [[nodiscard]] std::size_t slot_of(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>(hash) & (table_.size() - 1);
  }
  [[nodiscard]] std::uint32_t find(std::string_view limiter, std::string_view key,
                                   std::uint64_t hash) const noexcept;
  void name(std::uint32_t index, std::string_view limiter, std::string_view key,
            std::uint64_t hash) noexcept;
  void insert(std::uint32_t index) noexcept;
  void erase(std::uint32_t index) noexcept;
  void swap_places(std::uint32_t a, std::uint32_t b) noexcept;
  void sink(std::uint32_t place) noexcept;

  std::vector<Counter> counters_;     // the first of them are in use, as many as the heap has
  std::vector<std::uint32_t> heap_;   // indices of counters, the smallest count first
  std::vector<std::uint32_t> table_;  // ... by hash, with linear probing
};

}  // namespace sluice::detail
