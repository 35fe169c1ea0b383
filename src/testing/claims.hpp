// The claims of the conformance suite, each a function that throws a Mismatch.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sluice/testing/conformance.hpp"
#include "sluice/testing/detail/claims_concurrent.hpp"
#include "sluice/testing/detail/claims_faults.hpp"
#include "sluice/testing/detail/claims_history.hpp"
#include "sluice/testing/detail/claims_once.hpp"
#include "sluice/testing/detail/claims_plan.hpp"
#include "sluice/testing/detail/claims_rules.hpp"
#include "sluice/testing/detail/claims_time.hpp"

namespace sluice::testing::detail {

struct Check {
  std::string_view name;
  void (*run)(Context&);
  bool moves_time = false;  // needs ConformanceOptions::clock
  bool of_leased = false;   // holds also with ConformanceOptions::leased
};

/// All claims, in the order in which they are checked.
[[nodiscard]] std::span<const Check> checks() noexcept;

/// How the store breaks the claim, or an empty text.
[[nodiscard]] std::string run_check(const Check& check, Store& store,
                                    const ConformanceOptions& options, const std::string& prefix);

}  // namespace sluice::testing::detail
