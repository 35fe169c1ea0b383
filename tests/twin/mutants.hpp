// The bugs that the mutation run plants, each a textual replacement that must match exactly once.
// Threading: constants.
#pragma once

#include <span>
#include <string_view>

namespace sluice::test {

struct Mutant {
  std::string_view name;
  std::string_view file;  // a fragment's name, or empty: the kernel
  std::string_view from;
  std::string_view to;
};

/// Planted in fragments of backends/redis/lua.
[[nodiscard]] std::span<const Mutant> script_mutants();

/// Planted in src/algorithms/token_bucket.cpp.
[[nodiscard]] std::span<const Mutant> kernel_mutants();

inline constexpr std::string_view kernel_source = "src/algorithms/token_bucket.cpp";

}  // namespace sluice::test
