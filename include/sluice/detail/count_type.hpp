// CountType: the integer types of costs, limits and keys.
#pragma once

#include <concepts>
#include <cstdint>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// Any standard integer type of up to 64 bits, including std::int8_t and std::uint8_t, but neither
/// bool nor a character type.
template <class T>
concept CountType = std::integral<T> && sizeof(T) <= sizeof(std::int64_t) &&
                    !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                    !std::same_as<T, char32_t>;

}  // namespace sluice
