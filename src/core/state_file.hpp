// A file of states: text, a state a line. It is written whole, and checked as a whole before any of
// it is restored. docs/moving.md has the form. Threading: plain values; files belong to one caller.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sluice/extend/operation.hpp"

namespace sluice::detail {

/// The state of one key.
struct SavedState {
  std::string key;  ///< as render() writes it
  StateKind kind{};
  Word expiry = 0;  ///< means nothing from this time on, in microseconds by the store's clock
  std::vector<Word> words;
};

/// False if no rule of this kind writes such words, as far as one can tell without the limiter.
[[nodiscard]] bool is_sound(StateKind kind, std::span<const Word> words, Word now) noexcept;

/// Replaces the file, or writes into a pipe or a device. The lines are in the order of the keys; of
/// several states of a key the last one is written. Throws std::runtime_error that names the file;
/// it is then as it was. Returns how many were written.
std::size_t write_states(const std::string& path, std::vector<SavedState> states);

/// Throws std::runtime_error that names the file, the line and what is allowed, unless every line
/// is a state that this version reads.
[[nodiscard]] std::vector<SavedState> read_states(const std::string& path, Word now);

}  // namespace sluice::detail
