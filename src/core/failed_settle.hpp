// The exception of a settlement that failed. Threading: a function of its arguments alone.
#pragma once

#include <system_error>

#include "sluice/decide.hpp"
#include "sluice/reservation.hpp"

namespace sluice::detail {

/// For exceptions; see is_of_another_key().
inline constexpr const char* of_another_key = "the reservation is of another key or name";

/// What a settle() throws. `charge` is a step that charges one unit more; its first chosen argument
/// has the range of such units.
[[nodiscard]] std::system_error failed_settle(const CallName& call, const std::error_code& error,
                                              const Step& charge, const Reservation& grant,
                                              Cost actual);

}  // namespace sluice::detail
