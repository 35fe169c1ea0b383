// What each operation can honestly answer without the store that has its state. For FallbackStore.
// Threading: pure functions.
#pragma once

#include <array>

#include "sluice/store.hpp"

namespace sluice::detail {

/// How a policy may answer an operation.
enum class Substitute : std::uint8_t {
  none,   ///< not at all: it is about the state in the primary
  fresh,  ///< as for a key that nothing was asked of; in a local store as it is
  blank,  ///< admitted with nothing to tell; there is no state of it elsewhere
  waved,  ///< the same, and a plan goes on in a local store without it
  here,   ///< in a local store only: what it changes is for those who ask there
  lease,  ///< in a local store only, if the lease was granted there
};

[[nodiscard]] Substitute substitute_of(const Operation& operation) noexcept;

/// Zeros those output words of a grant by which its charge would be found in the primary.
void forget_charge(const Operation& operation, std::span<Word> output) noexcept;

/// Makes of a step one of `clients` equal parts of it; false if that is less than nothing, or the
/// request more than one part. `table` is room for the step's own.
[[nodiscard]] bool take_share(Step& step, Word clients,
                              std::array<Word, max_table_words>& table) noexcept;

}  // namespace sluice::detail
