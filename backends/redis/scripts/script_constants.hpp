// The constants that the Lua files refer to by name, from the kernels.
#pragma once

#include <string_view>

#include "sluice/time.hpp"

namespace sluice::redis_detail {

/// The value of a name such as "word_limit", "Errc.invalid_cost" or "leases.max_ttl"; null if it is
/// unknown.
[[nodiscard]] const Word* find_constant(std::string_view name) noexcept;

}  // namespace sluice::redis_detail
