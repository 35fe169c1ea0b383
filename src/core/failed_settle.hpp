// The exception of a settlement that failed. Threading: a function of its arguments alone.
#pragma once

#include <system_error>

#include "sluice/decide.hpp"

namespace sluice::detail {

/// What a settle() throws of a grant that has charged `charged` so far. `charge` is a step that
/// charges one unit more; its first chosen argument has the range of such units.
[[nodiscard]] std::system_error failed_settle(const CallName& call, const std::error_code& error,
                                              const Step& charge, Word charged, Cost actual);

}  // namespace sluice::detail
