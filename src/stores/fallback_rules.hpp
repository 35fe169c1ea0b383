// Adapts a step for a local store without its state, as its operation's row says. For
// FallbackStore. Threading: pure functions.
#pragma once

#include <array>

#include "sluice/extend/operation.hpp"
#include "sluice/store.hpp"

namespace sluice::detail {

/// Zeros the output words in Operation::charge_output.
void forget_charge(const Operation& operation, std::span<Word> output) noexcept;

/// Divides the limit of a step by `clients`, as Operation::share says; false if the share has less
/// than one unit, or less than the request's cost. `table` is storage for the table of the step.
[[nodiscard]] bool take_share(Step& step, Word clients,
                              std::array<Word, max_table_words>& table) noexcept;

}  // namespace sluice::detail
