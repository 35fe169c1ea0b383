// The table of operations: adding an algorithm adds its rows here.
#include "sluice/operation.hpp"

#include "sluice/algorithms/token_bucket.hpp"

namespace sluice {

std::span<const Operation* const> operations() noexcept {
  static constexpr std::array<const Operation*, 2> table{&token_bucket_take, &token_bucket_peek};
  return table;
}

}  // namespace sluice
