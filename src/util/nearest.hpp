// The most similar of some names, for messages about a misspelt one.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sluice::detail {

/// The candidate that becomes `text` by the fewest changes of single letters, or swaps of
/// neighbours, if they are at most half as many as `text` has letters; else "".
[[nodiscard]] std::string_view nearest(std::string_view text,
                                       std::span<const std::string_view> candidates);
/// The same with another limit for the changes.
[[nodiscard]] std::string_view nearest(std::string_view text,
                                       std::span<const std::string_view> candidates,
                                       std::size_t most);

}  // namespace sluice::detail
