// All forms of one call, for claims: each returns the answer, and reports a missing or repeated
// one. Threading: the caller's thread waits.
#pragma once

#include <span>
#include <string_view>

#include "sluice/decide.hpp"

namespace sluice::testing::detail {

struct CallForm {
  std::string_view name;
  Answer (*call)(Store&, const Plan&);
};

[[nodiscard]] std::span<const CallForm> call_forms() noexcept;

}  // namespace sluice::testing::detail
