// What a rule takes and returns, in integers: its arguments, a state of two words, its verdict.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/error.hpp"
#include "sluice/time.hpp"

namespace sluice {

enum class StateKind : std::uint8_t;

/// The result of a rule, in integers. If the status is negative, the other words are zero, except
/// as in wrong_kind().
struct Verdict {
  Word status = 0;       ///< allowed (1), refused (0), or -Errc: the rule could not decide
  Word remaining = 0;    ///< whole units of cost
  Word retry_after = 0;  ///< microseconds; 0 when allowed
  Word reset_after = 0;  ///< microseconds

  static constexpr Word allowed = 1;
  static constexpr Word refused = 0;
  static constexpr Word unsettled = 2;  ///< from TokenBucketRule::acquire_lagging() only
  [[nodiscard]] static constexpr Verdict failed(Errc code) noexcept {
    return {-static_cast<Word>(code), 0, 0, 0};
  }
  /// The verdict of a store whose key holds a state of another kind: Errc::wrong_kind, with that
  /// kind in `remaining`, 0 if unknown.
  [[nodiscard]] static constexpr Verdict wrong_kind(StateKind found) noexcept {
    return {-static_cast<Word>(Errc::wrong_kind), static_cast<Word>(found), 0, 0};
  }
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

inline constexpr std::size_t max_arguments = 8;
inline constexpr std::size_t cell_words = 2;
/// The most output words of a step.
inline constexpr std::size_t max_output = 12;

/// The arguments of one operation, in the order of its Args struct; unused words are zero.
using Arguments = std::array<Word, max_arguments>;
/// A state of two words, in the order of its State struct. All zero: absent.
using StateWords = std::array<Word, cell_words>;

}  // namespace sluice
