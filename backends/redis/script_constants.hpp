// The numbers that the Lua files name, as the kernels have them.
#pragma once

#include <string_view>

#include "sluice/time.hpp"

namespace sluice::redis_detail {

/// What a name such as "word_limit", "Errc.invalid_cost" or "leases.max_ttl" stands for; null if
/// nothing has it.
[[nodiscard]] const Word* find_constant(std::string_view name) noexcept;

}  // namespace sluice::redis_detail
