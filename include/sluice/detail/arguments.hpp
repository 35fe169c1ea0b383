// What a user's call may give: integers of any type, and text, of which a null pointer is an empty
// one.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// Any standard integer type of up to 64 bits, including std::int8_t and std::uint8_t, but neither
/// bool nor a character type.
template <class T>
concept CountType = std::integral<T> && sizeof(T) <= sizeof(std::int64_t) &&
                    !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                    !std::same_as<T, char32_t>;

namespace detail {

/// A parameter that takes every string type, and a `const char*` that may be null, which
/// std::string_view and std::string may not be made of. A view: the bytes must live until the call
/// that takes it has returned. The literals `nullptr` and 0 do not convert.
class TextArg {
 public:
  constexpr TextArg() noexcept = default;
  // NOLINTBEGIN(google-explicit-constructor): stands for the text
  constexpr TextArg(const char* text) noexcept
      : text_(text != nullptr ? std::string_view(text) : std::string_view()) {}
  template <std::convertible_to<std::string_view> T>
  requires(!std::convertible_to<T, const char*>) constexpr TextArg(const T& text) noexcept(
      noexcept(std::string_view(text)))
      : text_(text) {}
  constexpr TextArg(const char* bytes, std::size_t size) noexcept : text_(bytes, size) {}
  TextArg(std::nullptr_t) = delete;

  constexpr operator std::string_view() const noexcept { return text_; }
  // NOLINTEND(google-explicit-constructor)
  [[nodiscard]] constexpr std::string_view view() const noexcept { return text_; }

 private:
  std::string_view text_;
};

/// A temporary that owns its text, such as a std::string: a view of it would dangle.
template <class T>
concept OwningTemporary =
    !std::is_lvalue_reference_v<T> && std::convertible_to<T, std::string_view> &&
    !std::is_trivially_destructible_v<std::remove_cvref_t<T>>;

/// A TextArg for objects that keep the view: a temporary string does not compile.
class LastingText : public TextArg {
 public:
  using TextArg::TextArg;
  LastingText(std::nullptr_t) = delete;
  template <OwningTemporary T>
  LastingText(T&&) = delete;  // this keeps a view: put the string into a variable first
};

}  // namespace detail
}  // namespace sluice
