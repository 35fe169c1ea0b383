// The exception of a settlement that failed. Threading: a function of its arguments alone.
#pragma once

#include <system_error>

#include "sluice/decide.hpp"
#include "sluice/reservation.hpp"

namespace sluice::detail {

/// What a settle() throws that changed by `step`, which has what is charged or given back as its
/// first chosen argument.
[[nodiscard]] std::system_error failed_settle(const CallName& call, const std::error_code& error,
                                              const Step& step, const SettledCost& cost);

}  // namespace sluice::detail
