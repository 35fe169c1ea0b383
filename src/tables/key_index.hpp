// Finds rows by their keys.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::detail {

/// A hash table that is built once, of open addressing: a look-up of a key that it does not have
/// reads one cache line, of one that it has two or three. Reading is thread-safe.
template <class Value>
class KeyIndex {
 public:
  struct Row {
    std::string key;
    Value value;
  };

  /// REQUIRES: no key stands twice.
  explicit KeyIndex(std::vector<Row> rows) : rows_(std::move(rows)) {
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max() / 4;
    if (rows_.size() > most) throw std::length_error("a table has too many keys");
    slots_.resize(std::bit_ceil(2 * rows_.size() + 1));
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const std::size_t hash = hash_of(rows_[row].key);
      std::size_t at = hash;
      while (slot(at).row != 0) ++at;
      slots_[at % slots_.size()] = {tag_of(hash), static_cast<std::uint32_t>(row + 1)};
    }
  }

  /// Null: the key has no row.
  [[nodiscard]] const Value* find(std::string_view key) const noexcept {
    const std::size_t hash = hash_of(key);
    for (std::size_t at = hash; slot(at).row != 0; ++at) {
      if (slot(at).tag != tag_of(hash)) continue;
      const Row& row = rows_[slot(at).row - 1];
      if (row.key == key) return &row.value;
    }
    return nullptr;
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;  ///< the upper half of the hash
    std::uint32_t row = 0;  ///< its index, from 1; 0: empty
  };

  [[nodiscard]] static std::size_t hash_of(std::string_view key) noexcept {
    return std::hash<std::string_view>()(key);
  }
  [[nodiscard]] static std::uint32_t tag_of(std::size_t hash) noexcept {
    return static_cast<std::uint32_t>(hash >> 32);
  }
  /// The number of slots is a power of two.
  [[nodiscard]] const Slot& slot(std::size_t at) const noexcept {
    return slots_[at & (slots_.size() - 1)];
  }

  std::vector<Row> rows_;
  std::vector<Slot> slots_;
};

}  // namespace sluice::detail
