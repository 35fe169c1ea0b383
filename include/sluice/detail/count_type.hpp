// Which types are numbers: of costs, limits and keys.
#pragma once

#include <concepts>
#include <cstdint>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// A type that counts: any standard integer type of up to 64 bits, std::int8_t and std::uint8_t
/// included, but neither bool nor a character type: those mean something else than an amount.
template <class T>
concept CountType = std::integral<T> && sizeof(T) <= sizeof(std::int64_t) &&
                    !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                    !std::same_as<T, char32_t>;

}  // namespace sluice
