// What the kernel of a rule reads, and what it leaves for its store to write. Plain values of one
// call.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/extend/verdict.hpp"

namespace sluice {

/// The state that a kernel reads. Words that were never written are zero.
class StateView {
 public:
  explicit StateView(std::span<const Word> words) noexcept : words_(words) {}

  /// Reads a word. One out of the range of words reads as zero and marks the state as corrupt.
  [[nodiscard]] Word operator[](std::size_t index) const noexcept {
    const Word word = index < words_.size() ? words_[index] : 0;
    if (word >= 0 && word <= word_limit) [[likely]] {
      return word;
    }
    corrupt_ = true;
    return 0;
  }
  /// Marks the state as corrupt, for a kernel that finds inconsistent words.
  void call_corrupt() const noexcept { corrupt_ = true; }
  [[nodiscard]] bool is_corrupt() const noexcept { return corrupt_; }

 private:
  std::span<const Word> words_;
  mutable bool corrupt_ = false;
};

/// The effects of a kernel: changes of the state, which are applied only if every step of the plan
/// is allowed, and output words. Bounded: a rule makes few changes, whatever the size of its state.
class Effects {
 public:
  /// `count` words from `index` become `value`.
  struct Fill {
    std::uint32_t index;
    std::uint32_t count;
    Word value;
  };
  /// As std::rotate; applied before the fills, in their order.
  struct Rotation {
    std::size_t first;
    std::size_t middle;
    std::size_t last;
  };

  void put(std::size_t index, Word value) noexcept { fill(index, 1, value); }
  void fill(std::size_t index, std::size_t count, Word value) noexcept {
    if (count == 0) return;
    end_ = std::max(end_, index + count);
    fills_[fill_count_++] = {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(count),
                             value};
  }
  void rotate(std::size_t first, std::size_t middle, std::size_t last) noexcept {
    rotations_[rotation_count_++] = {first, middle, last};
    end_ = std::max(end_, last);
  }
  /// Appends an output word. An operation always has the same number of them.
  void add_output(Word word) noexcept { output_[output_count_++] = word; }

  [[nodiscard]] bool changes() const noexcept { return fill_count_ != 0; }
  [[nodiscard]] std::span<const Fill> fills() const noexcept;
  [[nodiscard]] std::span<const Rotation> rotations() const noexcept {
    return {rotations_.data(), rotation_count_};
  }
  [[nodiscard]] std::span<const Word> output() const noexcept {
    return {output_.data(), output_count_};
  }
  /// The number of words that the state needs for the changes.
  [[nodiscard]] std::size_t extent() const noexcept { return end_; }
  /// Applies the changes. REQUIRES: words.size() >= extent().
  void make(std::span<Word> words) const noexcept;

  void clear() noexcept {
    rotation_count_ = 0;
    end_ = 0;
    fill_count_ = 0;
    output_count_ = 0;
  }

  static constexpr std::size_t max_fills = 112;
  static constexpr std::size_t max_rotations = 2;

 private:
  std::array<Fill, max_fills> fills_;
  std::array<Word, max_output> output_;
  std::array<Rotation, max_rotations> rotations_;
  std::size_t rotation_count_ = 0;
  std::size_t end_ = 0;
  std::size_t fill_count_ = 0;
  std::size_t output_count_ = 0;
};

}  // namespace sluice
