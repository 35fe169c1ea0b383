// What a step becomes for a store that has not its state, as its operation's row says. For
// FallbackStore.
// Threading: pure functions.
#pragma once

#include <array>

#include "sluice/store.hpp"

namespace sluice::detail {

/// Zeros the output words in Operation::charge_output.
void forget_charge(const Operation& operation, std::span<Word> output) noexcept;

/// Makes of a step one of `clients` equal parts of it, as Operation::share says; false if a part
/// has less than one unit, or less than the request asks for. `table` is room for the step's own.
[[nodiscard]] bool take_share(Step& step, Word clients,
                              std::array<Word, max_table_words>& table) noexcept;

}  // namespace sluice::detail
