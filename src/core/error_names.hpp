// The names of the error codes in fault scripts, recordings and metrics. Threading: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sluice/error.hpp"

namespace sluice::detail {

struct NamedError {
  Errc code;
  std::string_view name;
};

/// Every Errc.
[[nodiscard]] std::span<const NamedError> error_names() noexcept;
/// Empty for a number that is no Errc.
[[nodiscard]] std::string_view find_name(Errc code) noexcept;
[[nodiscard]] std::optional<Errc> find_errc(std::string_view name) noexcept;

}  // namespace sluice::detail
