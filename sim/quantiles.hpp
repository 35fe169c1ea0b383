// The tables of the distributions of Delay that have no quicker way to draw. Threading: pure
// functions.
#pragma once

#include "sim/quantile_table.hpp"

namespace sluice::sim {

// Times are in microseconds, shapes in Q32. For the parameters that Delay allows.
[[nodiscard]] QuantileTable normal_quantiles(Word mean, Word sd);
[[nodiscard]] QuantileTable gamma_quantiles(Word mean, std::uint64_t shape);
[[nodiscard]] QuantileTable pareto_quantiles(Word least, std::uint64_t alpha, Word most);
[[nodiscard]] QuantileTable weibull_quantiles(Word scale, std::uint64_t shape);

}  // namespace sluice::sim
